#include "judge/rules/gradient_reading.hpp"

#include <algorithm>
#include <cmath>

namespace checker::rules {

Reading read(const StepDeviations& step, size_t world, double tolerance) {
  const auto fits = [&](double deviation) { return deviation < tolerance; };
  if (step.nothing == 0) return kNothing;
  if (world > 1 && fits(step.local)) return kLocal;
  if (world > 1 && fits(step.sum)) return kSum;
  if (world > 1 && fits(step.twice)) return kTwice;
  if (fits(step.accumulated)) return kAccumulated;
  return kOther;
}

bool is_scaled(const StepDeviations& step, double tolerance) {
  return std::ranges::any_of(step.multiples,
                             [&](double factor) { return std::abs(factor - 1) > tolerance; });
}

}  // namespace checker::rules
