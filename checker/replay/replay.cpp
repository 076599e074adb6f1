#include "replay.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

namespace replay {

using checker::BatchSeen;
using checker::ParameterSeen;
using checker::RankSeen;
using checker::Split;
using nlohmann::json;

namespace {

// What JSON can hold; a deviation that is no number is as wrong as can be.
double finite(double value) { return std::isfinite(value) ? value : 1e300; }

// The batch that led to each optimizer step.
std::vector<const BatchSeen*> batches_of_steps(const RankSeen& rank) {
  std::vector<const BatchSeen*> found(rank.steps.size(), nullptr);
  for (const auto& pass : rank.passes) {
    for (const auto& batch : pass.batches) {
      if (pass.split == Split::train && batch.step && *batch.step < found.size()) {
        found[*batch.step] = &batch;
      }
    }
  }
  return found;
}

Flat plus(Flat a, const Flat& b) {
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) a[i] += b[i];
  return a;
}

Flat scaled(Flat values, double factor) {
  for (auto& value : values) value *= factor;
  return values;
}

bool in_range(const std::vector<uint64_t>& ids, size_t size) {
  return std::ranges::all_of(ids, [&](uint64_t id) { return id < size; });
}

json names_apart(const Flat& got, const Flat& mean, const std::vector<ParameterSeen>& parameters) {
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
  Replay(const tasks::Task& task, const std::vector<RankSeen>& ranks) : task_(task), ranks_(ranks) {
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
    for (size_t t = 0; t < steps; ++t) step(t);
    for (size_t r = 0; r < ranks_.size(); ++r) updates(r);
    json result = {{"training", training()}, {"validation", json::array()}, {"test", nullptr}};
    if (!ranks_.empty()) evaluations(result);
    files();
    result["ranks"] = results_;
    return result;
  }

 private:
  void step(size_t t) {
    std::vector<Flat> local(ranks_.size());
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const auto& seen = ranks_[r].steps[t];
      json entry = {{"apart", finite(deviation(seen.values, ranks_[0].steps[t].values))}};
      const auto* batch = batches_[r][t];
      if (batch && !batch->ids.empty() && in_range(batch->ids, oracles_[r].size_of(Split::train)) &&
          oracles_[r].set(seen.values)) {
        local[r] = oracles_[r].compute(Split::train, batch->ids, true).gradients;
      }
      results_[r]["steps"].push_back(std::move(entry));
    }
    if (std::ranges::any_of(local, &Flat::empty)) return;  // not to be known
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
    }
  }

  // Whether the recorded parameters are what the optimizer makes of the recorded gradients; and
  // what they are after the last step, which nothing records.
  void updates(size_t r) {
    const auto& steps = ranks_[r].steps;
    Stepper stepper(task_, ranks_[r].parameters);
    for (size_t t = 0; t < steps.size(); ++t) {
      after_[r].push_back(stepper.step(steps[t].values, steps[t].gradients));
      if (t + 1 < steps.size() && t < results_[r]["steps"].size()) {
        results_[r]["steps"][t]["update"] =
            finite(deviation(steps[t + 1].values, after_[r].back()));
      }
    }
  }

  json training() const {
    auto losses = json::array();
    size_t epochs = 0;
    for (const auto& rank : ranks_)
      epochs = std::max(epochs, rank.passes_over(Split::train).size());
    for (size_t epoch = 0; epoch < epochs; ++epoch) {
      double sum = 0, count = 0;
      for (const auto& rank : ranks_) {
        const auto passes = rank.passes_over(Split::train);
        if (epoch >= passes.size()) continue;
        for (const auto& batch : passes[epoch]->batches) {
          sum += batch.loss_sum.value_or(0);
          count += batch.loss_count.value_or(0);
        }
      }
      losses.push_back(finite(sum / count));
    }
    return losses;
  }

  // The parameters that hold after the steps of training pass `epoch`.
  const Flat* state_after(size_t r, size_t epoch) const {
    const auto passes = ranks_[r].passes_over(Split::train);
    if (epoch >= passes.size()) return nullptr;
    for (size_t i = passes[epoch]->batches.size(); i-- > 0;) {
      const auto step = passes[epoch]->batches[i].step;
      if (!step || *step >= after_[r].size()) continue;
      if (*step + 1 < ranks_[r].steps.size()) return &ranks_[r].steps[*step + 1].values;
      return &after_[r][*step];
    }
    return nullptr;
  }

  // With rank 0's parameters, which are those of all ranks where all is right.
  void evaluations(json& result) {
    size_t epochs_done = 0;
    for (const auto& pass : ranks_[0].passes) {
      if (pass.split == Split::train) {
        ++epochs_done;
        continue;
      }
      const auto* state = epochs_done > 0 ? state_after(0, epochs_done - 1) : nullptr;
      if (!state || state->empty() || !oracles_[0].set(*state)) continue;
      const double mean = finite(oracles_[0].mean_over(pass.split));
      if (pass.split == Split::validation) result["validation"].push_back(mean);
      if (pass.split == Split::test) result["test"] = mean;
    }
  }

  void files() {
    if (ranks_.empty() || ranks_[0].steps.empty()) return;
    std::vector<std::pair<std::string, Flat>> states = {{"initial", ranks_[0].steps[0].values}};
    const size_t epochs = ranks_[0].passes_over(Split::train).size();
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
  const std::vector<RankSeen>& ranks_;
  std::vector<Oracle> oracles_;
  std::vector<std::vector<const BatchSeen*>> batches_;
  std::vector<std::vector<Flat>> after_;  // by rank and step: the parameters after it
  std::vector<json> results_;
};

}  // namespace

json replay(const tasks::Task& task, const std::vector<RankSeen>& ranks) {
  try {
    return Replay(task, ranks).run();
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

}  // namespace replay
