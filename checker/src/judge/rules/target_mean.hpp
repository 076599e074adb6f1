#pragma once
/// Gradients that must be the mean over the targets of all ranks.
#include <vector>

#include "judge/run_context.hpp"

namespace checker::rules {

/// How many targets each rank's last batch before a step had; 0 for a rank without one.
std::vector<double> targets_of_step(const Run& run, size_t t);

/// What is seen of a step whose gradients are not that mean. ranks: whose; example: one of them.
Symptom wrong_mean_over_targets(const RunContext& context, const std::vector<size_t>& ranks,
                                const StepDeviations& example, size_t t);

}  // namespace checker::rules
