#include "expected_losses.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "arithmetic.hpp"

namespace replay {

using checker::Pass;
using checker::RankSeen;
using checker::Split;
using checker::TensorSeen;
using nlohmann::json;

json ExpectedLosses::training() const {
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

// With rank 0's parameters, which are those of all ranks where all is right. A program may test
// the model of the last epoch or the best one.
void ExpectedLosses::evaluations(json& result) {
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
std::optional<double> ExpectedLosses::mean_after(Split split, size_t epochs, size_t state) {
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
double ExpectedLosses::mean_with_own_buffers(Split split, size_t epochs, const Flat& state) {
  double sum = 0, count = 0;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const auto passes = ranks_[r].evaluations(split);
    const auto found = std::ranges::find(passes, epochs, &Pass::epoch);
    if (found == passes.end() || !oracles_[r].set(state)) return NAN;
    const auto& batches = (*found)->batches;
    oracles_[r].set_buffers(ranks_[r].buffers_at(batches.empty() ? 0 : batches.back().event));
    for (const auto& batch : batches) {
      if (!in_range(batch.ids, oracles_[r].size_of(split))) return NAN;
      const auto part = oracles_[r].compute(split, batch.ids, false);
      sum += part.sum;
      count += part.count;
    }
  }
  return sum / count;
}

// The parameters that hold after the steps of training pass `epoch`.
const Flat* ExpectedLosses::state_after(size_t r, size_t epoch) const {
  const size_t steps = steps_until(r, epoch);
  if (steps == 0) return nullptr;
  if (steps < ranks_[r].steps.size()) return &ranks_[r].steps[steps].values;
  return &after_[r][steps - 1];
}

size_t ExpectedLosses::steps_until(size_t r, size_t epoch) const {
  const auto passes = ranks_[r].trainings();
  if (epoch >= passes.size()) return 0;
  for (size_t i = passes[epoch]->batches.size(); i-- > 0;) {
    const auto step = passes[epoch]->batches[i].step;
    if (step && *step < after_[r].size()) return *step + 1;
  }
  return 0;
}

}  // namespace replay
