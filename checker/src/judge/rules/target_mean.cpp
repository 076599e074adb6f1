#include "judge/rules/target_mean.hpp"

#include <algorithm>

namespace checker::rules {

namespace {

constexpr std::string_view kOverRanks = "gradients_averaged_over_ranks",
                           kWeights = "gradients_weighted_otherwise";

std::string_view read(const StepDeviations& step, double tolerance) {
  if (step.nothing == 0) return "no_gradients";
  if (step.mean < tolerance) return kOverRanks;
  if (step.target_multiple != 0) return kWeights;
  if (step.local < tolerance) return "gradients_not_averaged";
  return "gradients_of_targets_wrong";
}

// Whether ranks exchange something between a loss and its backward(), as they do not before the
// TODO.
bool exchanges_before_backward(const Run& run) {
  for (const auto& rank : run.ranks) {
    bool after_loss = false;
    for (const auto& event : rank.log.events) {
      if (event.kind == Kind::collective && after_loss) return true;
      if (event.kind == Kind::loss) {
        const auto numbers = event.numbers<double>();
        after_loss = numbers.size() > 2 && numbers[2] != 0;  // one to train with
      }
      if (event.kind == Kind::backward) after_loss = false;
    }
  }
  return false;
}

}  // namespace

std::vector<double> targets_of_step(const Run& run, size_t t) {
  std::vector<double> counts;
  for (const auto& rank : run.ranks) {
    counts.push_back(0);
    for (const auto& pass : rank.passes) {
      for (const auto& batch : pass.batches) {
        if (batch.step == t) counts.back() = batch.loss_count;
      }
    }
  }
  return counts;
}

Symptom wrong_mean_over_targets(const RunContext& context, const std::vector<size_t>& ranks,
                                const StepDeviations& example, size_t t) {
  const auto reading = read(example, context.gradient_tolerance());
  Symptom symptom{.id = std::string(reading),
                  .evidence = {{"off_mean", {{"ranks", ranks_value(ranks)}}}},
                  .deviation = example.target_mean};
  if (reading == kWeights) {
    symptom.evidence = {
        {"factor", {{"ranks", ranks_value(ranks)}, {"factor", digits(example.target_multiple)}}}};
  }
  if (reading == kOverRanks || reading == kWeights) {
    std::string counts;
    for (const double count : targets_of_step(context.run(), t)) {
      counts += (counts.empty() ? "" : ", ") + digits(count);
    }
    symptom.evidence.push_back({"counts", {{"counts", counts}}});
  }
  if (reading == kOverRanks && !exchanges_before_backward(context.run())) {
    symptom.kind = FindingKind::not_started;
  }
  return symptom;
}

}  // namespace checker::rules
