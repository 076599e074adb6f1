#include "replay.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "accumulated.hpp"
#include "arithmetic.hpp"
#include "expected_losses.hpp"
#include "fingerprints.hpp"

namespace replay {

using checker::BatchSeen;
using checker::RankSeen;
using checker::Split;
using nlohmann::json;

namespace {

// The batches that led to each optimizer step: several where gradients are accumulated.
std::vector<std::vector<const BatchSeen*>> batches_of_steps(const RankSeen& rank) {
  std::vector<std::vector<const BatchSeen*>> found(rank.steps.size());
  for (const auto& pass : rank.passes) {
    for (const auto& batch : pass.batches) {
      if (batch.step && *batch.step < found.size()) found[*batch.step].push_back(&batch);
    }
  }
  return found;
}

class Replay {
 public:
  Replay(const tasks::Task& task, const tasks::Options& options, const std::vector<RankSeen>& ranks)
      : task_(task), options_(options), ranks_(ranks) {
    for (const auto& rank : ranks) {
      oracles_.emplace_back(task, rank.parameters);
      batches_.push_back(batches_of_steps(rank));
      results_.push_back({{"steps", json::array()}, {"files", json::array()}});
      after_.emplace_back();
    }
  }

  json run() {
    size_t steps = ranks_.empty() ? 0 : SIZE_MAX;
    for (const auto& rank : ranks_) steps = std::min(steps, rank.steps.size());
    find_places();
    for (size_t t = 0; t < steps; ++t) step(t);
    for (size_t r = 0; r < ranks_.size(); ++r) updates(r);
    json result = {
        {"training", losses_.training()}, {"validation", json::array()}, {"test", nullptr}};
    if (!ranks_.empty()) losses_.evaluations(result);
    files();
    result["ranks"] = results_;
    return result;
  }

 private:
  // Of each rank's parameters in the model that rank 0 made.
  void find_places() {
    places_.resize(ranks_.size());
    if (ranks_.empty() || ranks_[0].steps.empty()) return;
    const auto whole = in_order(ranks_[0].model, ranks_[0].parameters);
    if (!whole) return;
    const Fingerprints fingerprints(*whole);
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (!ranks_[r].steps.empty()) places_[r] = fingerprints.places(ranks_[r].steps[0].values);
    }
  }

  void step(size_t t) {
    std::vector<AccumulatedGradients> parts(ranks_.size());
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto& seen = ranks_[r].steps[t];
      results_[r]["steps"].push_back(
          {{"apart", finite(deviation(seen.values, ranks_[0].steps[t].values))}});
      parts[r] = gradients_of(r, t);
    }
    if (std::ranges::any_of(parts, &AccumulatedGradients::empty)) return;  // not to be known
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
      const auto& got = ranks_[r].steps[t].gradients;
      from_mean = std::max(from_mean, finite(deviation(got, mean)));
      from_target_mean = std::max(from_target_mean, finite(deviation(got, target_mean)));
      from_local = std::max(from_local, finite(deviation(got, local[r])));
    }
    return std::min({from_mean, from_target_mean, from_local});
  }

  // Holds the recorded gradients against those of the mean over all ranks' targets.
  void compare_targets(size_t t, const std::vector<Flat>& local,
                       const std::vector<double>& targets) {
    const Flat mean = weighted_mean(local, targets);
    std::optional<Flat> together;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto& got = ranks_[r].steps[t].gradients;
      auto& entry = results_[r]["steps"][t];
      const double apart = finite(deviation(got, mean));
      entry["target_mean"] = apart;
      entry["target_multiple"] = multiple_of(got, mean);
      if (apart < kSame || ranks_[r].buffers.empty()) continue;
      // A model that normalises over the batches of all ranks computes what one process does.
      if (!together) together = of_one_batch(t);
      if (!together->empty()) entry["together"] = finite(deviation(got, *together));
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
  void compare(size_t t, const std::vector<Flat>& local) {
    Flat sum(local[0].size(), 0.0);
    for (const auto& part : local) sum = plus(std::move(sum), part);
    const double world = static_cast<double>(ranks_.size());
    const Flat mean = scaled(sum, 1 / world);
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto& got = ranks_[r].steps[t].gradients;
      auto& entry = results_[r]["steps"][t];
      entry["mean"] = finite(deviation(got, mean));
      entry["local"] = finite(deviation(got, local[r]));
      entry["sum"] = finite(deviation(got, sum));
      entry["twice"] = finite(deviation(got, scaled(mean, 1 / world)));
      entry["nothing"] = std::ranges::all_of(got, [](double g) { return g == 0; }) ? 0 : 1;
      if (t > 0) {
        entry["accumulated"] = finite(deviation(got, plus(mean, ranks_[r].steps[t - 1].gradients)));
      }
      entry["parameters"] = names_apart(got, mean, ranks_[r].parameters);
      entry["multiples"] = multiples_of(got, mean, ranks_[r].parameters);
      entry["mean_over"] = ranks_averaged(got, local, r);
      if (!places_[r]) continue;
      entry["fingerprint_mean"] = finite(deviation_at(got, *places_[r], mean));
      entry["fingerprint_local"] = finite(deviation_at(got, *places_[r], local[r]));
    }
  }

  // Whether the recorded parameters are what the optimizer makes of the recorded gradients; and
  // what they are after the last step, which nothing records.
  void updates(size_t r) {
    const auto& steps = ranks_[r].steps;
    Stepper stepper(task_, ranks_[r].parameters, total_steps());
    for (size_t t = 0; t < steps.size(); ++t) {
      const auto& rates = steps[t].learning_rates;
      const auto stepper_rates = stepper.rates();
      const double rates_apart = rates.empty() ? 0 : rates_deviation(rates, stepper_rates);
      after_[r].push_back(stepper.step(steps[t]));
      if (t >= results_[r]["steps"].size()) continue;
      auto& entry = results_[r]["steps"][t];
      entry["rates"] = rates_apart;
      entry["rate_factor"] = common_factor(rates, stepper_rates);
      if (t + 1 == steps.size()) continue;
      entry["update"] = finite(deviation(steps[t + 1].values, after_[r].back()));
    }
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
  const std::vector<RankSeen>& ranks_;
  std::vector<Oracle> oracles_;
  std::vector<std::optional<std::vector<size_t>>> places_;           // by rank, in rank 0's model
  std::vector<std::vector<std::vector<const BatchSeen*>>> batches_;  // by rank and step
  std::vector<std::vector<Flat>> after_;  // by rank and step: the parameters after it
  ExpectedLosses losses_{ranks_, oracles_, after_};
  std::vector<json> results_;
};

}  // namespace

json replay(const tasks::Task& task, const tasks::Options& options,
            const std::vector<RankSeen>& ranks) {
  try {
    return Replay(task, options, ranks).run();
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace replay
