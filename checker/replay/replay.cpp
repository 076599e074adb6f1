#include "replay.hpp"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "accumulated.hpp"
#include "fingerprints.hpp"

namespace replay {

using checker::BatchSeen;
using checker::Pass;
using checker::RankSeen;
using checker::Split;
using checker::TensorSeen;
using nlohmann::json;

namespace {

// Two ways to compute the same thing differ by less, relatively, also in single precision.
constexpr double kSame = 1e-6;

// What JSON can hold; a deviation that is no number is as wrong as can be.
double finite(double value) { return std::isfinite(value) ? value : 1e300; }

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

bool in_range(const std::vector<uint64_t>& ids, size_t size) {
  return std::ranges::all_of(ids, [&](uint64_t id) { return id < size; });
}

Flat plus(Flat a, const Flat& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) a[i] += b[i];
  return a;
}

Flat scaled(Flat values, double factor) {
  for (auto& value : values) value *= factor;
  return values;
}

// Of the groups of several optimizers each should have those of one.
double rates_deviation(const Flat& got, const Flat& expected) {
  if (expected.empty() || got.size() % expected.size() != 0) return finite(NAN);
  Flat all;
  while (all.size() < got.size()) all.insert(all.end(), expected.begin(), expected.end());
  return finite(deviation(got, all));
}

// By which all rates are larger than they should be; 0 if there is none.
double common_factor(const Flat& got, const Flat& expected) {
  if (got.empty() || expected.empty() || expected[0] == 0) return 0;
  const double factor = got[0] / expected[0];
  return rates_deviation(got, scaled(expected, factor)) < kSame ? factor : 0;
}

// Zeros for the parameters that no optimizer stepped.
void keep_stepped(Flat& gradients, const std::vector<bool>& stepped,
                  const std::vector<TensorSeen>& parameters) {
  size_t from = 0;
  for (size_t i = 0; i < std::min(stepped.size(), parameters.size()); ++i) {
    const size_t end = std::min(from + parameters[i].elements, gradients.size());
    if (!stepped[i]) std::fill(gradients.begin() + from, gradients.begin() + end, 0.0);
    from = end;
  }
}

json names_apart(const Flat& got, const Flat& mean, const std::vector<TensorSeen>& parameters) {
  auto names = json::array();
  double scale = 0;
  for (const double value : mean) scale = std::max(scale, std::abs(value));
  size_t from = 0;
  for (const auto& parameter : parameters) {
    for (size_t i = from; i < std::min({from + parameter.elements, got.size(), mean.size()}); ++i) {
      if (std::abs(got[i] - mean[i]) > 1e-7 * scale) {
        names.push_back(parameter.name);
        break;
      }
    }
    from += parameter.elements;
  }
  return names;
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
    json result = {{"training", training()}, {"validation", json::array()}, {"test", nullptr}};
    if (!ranks_.empty()) evaluations(result);
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
    double least = std::numeric_limits<double>::infinity();
    for (const auto way : kWaysToAccumulate) {
      std::vector<Flat> local;
      for (const auto& part : parts) local.push_back(part.added_up(way));
      const double apart = farthest(local, t);
      if (!best.empty() && !(apart < least)) continue;
      least = apart;
      best = std::move(local);
    }
    compare(t, best);
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

  // The ranks, of which `own` is one, whose mean these gradients are, if they are not all.
  static std::vector<size_t> ranks_averaged(const Flat& got, const std::vector<Flat>& local,
                                            size_t own) {
    for (size_t chosen = 1; chosen + 1 < size_t{1} << local.size(); ++chosen) {
      if ((chosen >> own & 1) == 0) continue;
      std::vector<size_t> ranks;
      Flat sum(got.size(), 0.0);
      for (size_t rank = 0; rank < local.size(); ++rank) {
        if ((chosen >> rank & 1) == 0) continue;
        ranks.push_back(rank);
        sum = plus(std::move(sum), local[rank]);
      }
      const Flat mean = scaled(std::move(sum), 1 / static_cast<double>(ranks.size()));
      if (deviation(got, mean) < kSame) return ranks;
    }
    return {};
  }

  // How far the recorded gradients are from the mean of these, or from these themselves.
  double farthest(const std::vector<Flat>& local, size_t t) const {
    Flat mean(local[0].size(), 0.0);
    for (const auto& part : local) mean = plus(std::move(mean), part);
    mean = scaled(std::move(mean), 1 / static_cast<double>(local.size()));
    double from_mean = 0, from_local = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto& got = ranks_[r].steps[t].gradients;
      from_mean = std::max(from_mean, finite(deviation(got, mean)));
      from_local = std::max(from_local, finite(deviation(got, local[r])));
    }
    return std::min(from_mean, from_local);
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

  json training() const {
    auto losses = json::array();
    size_t epochs = 0;
    for (const auto& rank : ranks_) epochs = std::max(epochs, rank.trainings().size());
    for (size_t epoch = 0; epoch < epochs; ++epoch) {
      double sum = 0, count = 0;
      for (const auto& rank : ranks_) {
        const auto passes = rank.trainings();
        if (epoch >= passes.size()) continue;
        for (const auto& batch : passes[epoch]->batches) {
          sum += batch.loss_sum;
          count += batch.loss_count;
        }
      }
      losses.push_back(finite(sum / count));
    }
    return losses;
  }

  // The parameters that hold after the steps of training pass `epoch`.
  const Flat* state_after(size_t r, size_t epoch) const {
    const auto passes = ranks_[r].trainings();
    if (epoch >= passes.size()) return nullptr;
    for (size_t i = passes[epoch]->batches.size(); i-- > 0;) {
      const auto step = passes[epoch]->batches[i].step;
      if (!step || *step >= after_[r].size()) continue;
      if (*step + 1 < ranks_[r].steps.size()) return &ranks_[r].steps[*step + 1].values;
      return &after_[r][*step];
    }
    return nullptr;
  }

  // With rank 0's parameters, which are those of all ranks where all is right. A program may test
  // the model of the last epoch or the best one.
  void evaluations(json& result) {
    const size_t epochs = ranks_[0].trainings().size();
    std::vector<double> validation;
    for (size_t epoch = 1; epoch <= epochs; ++epoch) {
      const auto mean = mean_after(Split::validation, epoch, epoch);
      if (!mean) break;
      validation.push_back(*mean);
    }
    result["validation"] = validation;
    if (validation.empty()) return;
    const auto best = std::ranges::min_element(validation) - validation.begin();
    if (const auto mean = mean_after(Split::test, epochs, epochs)) result["test"] = *mean;
    if (const auto mean = mean_after(Split::test, epochs, static_cast<size_t>(best) + 1))
      result["test_of_best"] = *mean;
  }

  // The mean loss of what is evaluated after so many epochs, with the parameters of `state` epochs.
  std::optional<double> mean_after(Split split, size_t epochs, size_t state) {
    const auto* values = state_after(0, state - 1);
    if (!values || values->empty() || !oracles_[0].set(*values)) return std::nullopt;
    const auto evaluated = [&](const Pass* pass) { return pass->epoch == epochs; };
    if (std::ranges::none_of(ranks_[0].evaluations(split), evaluated)) return std::nullopt;
    const bool own_buffers =
        std::ranges::any_of(ranks_, [](const RankSeen& rank) { return !rank.buffers.empty(); });
    return finite(own_buffers ? mean_with_own_buffers(split, epochs, *values)
                              : oracles_[0].mean_over(split));
  }

  // A rank evaluates its share with its own buffers: running means and variances differ from rank
  // to rank after the last training step.
  double mean_with_own_buffers(Split split, size_t epochs, const Flat& state) {
    double sum = 0, count = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto passes = ranks_[r].evaluations(split);
      const auto found = std::ranges::find(passes, epochs, &Pass::epoch);
      if (found == passes.end() || !oracles_[r].set(state)) return NAN;
      oracles_[r].set_buffers(buffers_at(r, **found));
      for (const auto& batch : (*found)->batches) {
        if (!in_range(batch.ids, oracles_[r].size_of(split))) return NAN;
        const auto part = oracles_[r].compute(split, batch.ids, false);
        sum += part.sum;
        count += part.count;
      }
    }
    return sum / count;
  }

  // What was recorded last before the first loss of the pass.
  std::vector<TensorSeen> buffers_at(size_t r, const Pass& pass) const {
    std::vector<TensorSeen> latest;
    for (const auto& tensor : ranks_[r].model) {
      if (tensor.buffer) latest.push_back(tensor);
    }
    const size_t until = pass.batches.empty() ? 0 : pass.batches.back().event;
    for (const auto& buffers : ranks_[r].buffers) {
      if (buffers.event <= until) latest = buffers.tensors;
    }
    return latest;
  }

  void files() {
    if (ranks_.empty() || ranks_[0].steps.empty()) return;
    std::vector<std::pair<std::string, Flat>> states = {{"initial", ranks_[0].steps[0].values}};
    const size_t epochs = ranks_[0].trainings().size();
    for (size_t epoch = 0; epoch < epochs; ++epoch) {
      if (const auto* state = state_after(0, epoch)) {
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
