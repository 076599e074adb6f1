#include "replay.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "accumulated.hpp"
#include "arithmetic.hpp"
#include "continued.hpp"
#include "evidence/folders.hpp"
#include "expected_losses.hpp"
#include "pieces.hpp"
#include "saved.hpp"
#include "serial_memory.hpp"
#include "updates.hpp"

namespace replay {

using checker::BatchSeen;
using checker::RankSeen;
using checker::Split;
using nlohmann::json;

namespace {

class Replay {
 public:
  Replay(const tasks::Task& task, const tasks::Options& options, std::vector<RankSeen> ranks)
      : task_(task), options_(options), ranks_(std::move(ranks)) {
    for (const auto& rank : ranks_) {
      oracles_.emplace_back(task, rank.parameters);
      batches_.push_back(batches_of_steps(rank));
      results_.push_back({{"steps", json::array()}, {"files", json::array()}});
      after_.emplace_back();
    }
  }

  json run() {
    size_t steps = ranks_.empty() ? 0 : SIZE_MAX;
    for (const auto& rank : ranks_) steps = std::min(steps, rank.steps.size());
    for (size_t t = 0; t < steps; ++t) step(t);
    updates();
    json result = {
        {"training", losses_.training()}, {"validation", json::array()}, {"test", nullptr}};
    if (!ranks_.empty()) losses_.evaluations(result);
    files();
    result["ranks"] = results_;
    if (pieces_.any()) result["cover"] = pieces_.cover();
    return result;
  }

  // What other runs may start from.
  RunBefore as_before() const { return run_before(ranks_, pieces_, losses_); }

 private:
  void step(size_t t) {
    std::vector<AccumulatedGradients> parts(ranks_.size());
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto& values = recorded(r)[t].values;
      const auto first = pieces_.part(r, ranks_[0].steps[t].values);
      results_[r]["steps"].push_back(
          {{"apart", pieces_.all_known() ? finite(deviation(values, first)) : 0}});
      parts[r] = gradients_of(r, t);
    }
    const bool known =
        pieces_.all_known() && std::ranges::none_of(parts, &AccumulatedGradients::empty);
    if (!known) return;
    std::vector<Flat> best;
    std::vector<double> counts;
    double least = std::numeric_limits<double>::infinity();
    for (const auto way : kWaysToAccumulate) {
      std::vector<Flat> local;
      std::vector<double> targets;
      for (const auto& part : parts) {
        local.push_back(part.added_up(way));
        targets.push_back(part.count(way));
      }
      const double apart = farthest(local, targets, t);
      if (!best.empty() && !(apart < least)) continue;
      least = apart;
      best = std::move(local);
      counts = std::move(targets);
    }
    compare(t, best);
    compare_targets(t, best, counts);
  }

  // Of the batches of a step, by the parameters before it; nothing where that cannot be known.
  AccumulatedGradients gradients_of(size_t r, size_t t) {
    AccumulatedGradients gradients;
    const auto& seen = ranks_[r].steps[t];
    for (const auto* batch : batches_[r][t]) {
      if (batch->ids.empty() || !in_range(batch->ids, oracles_[r].size_of(batch->split)) ||
          !oracles_[r].set(seen.values)) {
        return {};
      }
      oracles_[r].set_buffers(ranks_[r].buffers_at(seen.event));
      auto part = oracles_[r].compute(batch->split, batch->ids, true, generator_of(r, *batch));
      keep_stepped(part.gradients, seen.stepped, ranks_[r].parameters);
      gradients.add(std::move(part.gradients), part.count);
    }
    return gradients;
  }

  std::string_view generator_of(size_t r, const BatchSeen& batch) const {
    const auto& forwards = ranks_[r].forwards;
    if (!batch.forward || *batch.forward >= forwards.size()) return {};
    const auto event = forwards[*batch.forward].generator;
    return event ? std::string_view(ranks_[r].log.events[*event].payload) : std::string_view();
  }

  // How far the recorded gradients are from a mean of these, or from these themselves.
  double farthest(const std::vector<Flat>& local, const std::vector<double>& targets,
                  size_t t) const {
    const Flat mean = weighted_mean(local, std::vector<double>(local.size(), 1));
    const Flat target_mean = weighted_mean(local, targets);
    double from_mean = 0, from_target_mean = 0, from_local = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto& got = recorded(r)[t].gradients;
      const auto off = [&](const Flat& whole) {
        return finite(deviation(got, pieces_.part(r, whole)));
      };
      from_mean = std::max(from_mean, off(mean));
      from_target_mean = std::max(from_target_mean, off(target_mean));
      from_local = std::max(from_local, off(local[r]));
    }
    return std::min({from_mean, from_target_mean, from_local});
  }

  // Holds the recorded gradients against those of the mean over all ranks' targets.
  void compare_targets(size_t t, const std::vector<Flat>& local,
                       const std::vector<double>& targets) {
    const Flat whole_mean = weighted_mean(local, targets);
    std::optional<Flat> together;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto& got = recorded(r)[t].gradients;
      const Flat mean = pieces_.part(r, whole_mean);
      auto& entry = results_[r]["steps"][t];
      const double apart = finite(deviation(got, mean));
      entry["target_mean"] = apart;
      entry["target_multiple"] = multiple_of(got, mean);
      if (apart < kSame || ranks_[r].buffers.empty()) continue;
      // A model that normalises over the batches of all ranks computes what one process does.
      if (!together) together = of_one_batch(t);
      if (together->empty()) continue;
      entry["together"] = finite(deviation(got, pieces_.part(r, *together)));
    }
  }

  // Of the ranks' batches as one; empty where that cannot be computed.
  Flat of_one_batch(size_t t) {
    std::vector<uint64_t> ids;
    for (const auto& steps : batches_) {
      if (steps[t].size() != 1 || steps[t].front()->split != batches_[0][t].front()->split)
        return {};
      ids.insert(ids.end(), steps[t].front()->ids.begin(), steps[t].front()->ids.end());
    }
    auto part = oracles_[0].compute(batches_[0][t].front()->split, ids, true,
                                    generator_of(0, *batches_[0][t].front()));
    keep_stepped(part.gradients, ranks_[0].steps[t].stepped, ranks_[0].parameters);
    return std::move(part.gradients);
  }

  // Holds the recorded gradients against these of the ranks' own batches.
  void compare(size_t t, const std::vector<Flat>& of_ranks) {
    const double world = static_cast<double>(ranks_.size());
    for (size_t r = 0; r < ranks_.size(); ++r) {
      std::vector<Flat> local;
      for (const auto& whole : of_ranks) local.push_back(pieces_.part(r, whole));
      Flat sum(local[0].size(), 0.0);
      for (const auto& part : local) sum = plus(std::move(sum), part);
      const Flat mean = scaled(sum, 1 / world);
      const auto& got = recorded(r)[t].gradients;
      auto& entry = results_[r]["steps"][t];
      entry["mean"] = finite(deviation(got, mean));
      entry["local"] = finite(deviation(got, local[r]));
      entry["sum"] = finite(deviation(got, sum));
      entry["twice"] = finite(deviation(got, scaled(mean, 1 / world)));
      entry["nothing"] = std::ranges::all_of(got, [](double g) { return g == 0; }) ? 0 : 1;
      if (t > 0) {
        entry["accumulated"] = finite(deviation(got, plus(mean, recorded(r)[t - 1].gradients)));
      }
      entry["parameters"] = names_of_parameters_apart(r, got, of_ranks);
      entry["multiples"] = multiples_of(got, mean, ranks_[r].parameters);
      entry["mean_over"] = entry["mean"].get<double>() < kSame ? std::vector<size_t>()
                                                               : ranks_averaged(got, local, r);
    }
  }

  std::vector<std::string> names_of_parameters_apart(size_t r, const Flat& got,
                                                     const std::vector<Flat>& local) const {
    const Flat mean = weighted_mean(local, std::vector<double>(local.size(), 1));
    if (!pieces_.has(r)) return names_apart(got, pieces_.part(r, mean), ranks_[r].parameters);
    std::vector<const Flat*> parts(ranks_.size());
    parts[r] = &got;
    return names_apart(pieces_.whole(parts, mean), mean, ranks_[r].parameters);
  }

  void updates() {
    std::vector<std::vector<Flat>> own;
    for (size_t r = 0; r < ranks_.size(); ++r) own.push_back(updates_of(r));
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (size_t t = 0; t < own[r].size(); ++t) {
        if (!pieces_.has(r)) {
          after_[r].push_back(own[r][t]);
          continue;
        }
        std::vector<const Flat*> parts(ranks_.size());
        for (size_t other = 0; other < ranks_.size(); ++other) {
          if (t < own[other].size()) parts[other] = &own[other][t];
        }
        after_[r].push_back(pieces_.whole(parts, ranks_[r].steps[t].values));
      }
    }
  }

  std::vector<Flat> updates_of(size_t r) {
    const auto model = task_.make_model();
    Stepper stepper(task_,
                    pieces_.has(r) ? loose_parameters(pieces_.parameters(r))
                                   : ordered_parameters(*model, ranks_[r].parameters),
                    total_steps());
    return follow_updates(stepper, recorded(r), results_[r]["steps"]);
  }

  // What the rank recorded, be it of the whole model or of its pieces.
  const std::vector<checker::StepSeen>& recorded(size_t r) const {
    return pieces_.has(r) ? pieces_.steps(r) : ranks_[r].steps;
  }

  // As tasks::Progress counts them.
  int64_t total_steps() const {
    const auto samples = static_cast<int64_t>(oracles_[0].size_of(Split::train));
    const auto world = static_cast<int64_t>(ranks_.size());
    const int64_t all = options_.epochs * (samples / world / options_.batch_size);
    return options_.max_steps > 0 ? std::min(all, options_.max_steps) : all;
  }

  void files() {
    if (ranks_.empty() || ranks_[0].steps.empty()) return;
    std::vector<std::pair<std::string, Flat>> states = {{"initial", ranks_[0].steps[0].values}};
    const size_t epochs = ranks_[0].trainings().size();
    for (size_t epoch = 0; epoch < epochs; ++epoch) {
      if (const auto* state = losses_.state_after(0, epoch)) {
        states.emplace_back("epoch " + std::to_string(epoch + 1), *state);
      }
    }
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (const auto& file : ranks_[r].files) {
        results_[r]["files"].push_back(look_into(task_, file, states, ranks_[0].parameters));
      }
    }
  }

  const tasks::Task& task_;
  const tasks::Options& options_;
  std::vector<RankSeen> ranks_;  // of the whole model, also where a rank holds pieces
  Pieces pieces_{ranks_};
  std::vector<Oracle> oracles_;
  std::vector<std::vector<std::vector<const BatchSeen*>>> batches_;  // by rank and step
  std::vector<std::vector<Flat>> after_;  // by rank and step: the parameters after it
  ExpectedLosses losses_{ranks_, oracles_, after_};
  std::vector<json> results_;
};

}  // namespace

json replay(const tasks::Task& task, const tasks::Options& options, std::vector<RankSeen> ranks,
            const std::optional<std::vector<RankSeen>>& further, checker::Holding holding) {
  try {
    json memory;
    if (holding == checker::Holding::parameters_or_pieces) memory = serial_memory(task, ranks);
    const auto folder = ranks.empty() ? "" : checker::best_model_in(ranks[0].folder);
    const bool has_saved = std::filesystem::is_directory(folder);
    Replay replay(task, options, std::move(ranks));
    auto result = replay.run();
    if (!memory.is_null()) result["memory"] = memory;
    if (!has_saved && !further) return result;
    const auto before = replay.as_before();
    if (has_saved) result["saved"] = what_is_saved(saved_files(folder), before.models());
    if (further) result["continued"] = continued(task, before, *further);
    return result;
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace replay
