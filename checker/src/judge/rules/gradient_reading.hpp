#pragma once
/// What a step's gradients are, by how far they are from what they might be.
#include <string_view>

#include "judge/oracle.hpp"

namespace checker::rules {

/// The finding that a step's gradients are.
using Reading = std::string_view;
inline constexpr Reading kNothing = "no_gradients", kLocal = "gradients_not_averaged",
                         kSum = "gradients_summed", kTwice = "gradients_divided_twice",
                         kAccumulated = "gradients_accumulate",
                         kSome = "some_gradients_not_averaged",
                         kScaled = "gradients_divided_wrongly", kOther = "gradients_wrong",
                         kLoop = "training_step_wrong";

/// tolerance: relative.
Reading read(const StepDeviations& step, size_t world, double tolerance);

/// Whether each parameter's gradient is the mean but for a factor, which is not one everywhere.
bool is_scaled(const StepDeviations& step, double tolerance);

}  // namespace checker::rules
