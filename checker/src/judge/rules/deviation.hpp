#pragma once
/// How far numbers of a program are from those that they should be.
#include <algorithm>
#include <cmath>
#include <vector>

#include "judge/oracle.hpp"

namespace checker::rules {

/// The largest difference, relative to the largest wanted number; kUnknown where there are not as
/// many.
inline double deviation(const std::vector<double>& got, const std::vector<double>& wanted) {
  if (got.size() != wanted.size()) return kUnknown;
  double apart = 0, scale = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    apart = std::max(apart, std::abs(got[i] - wanted[i]));
    scale = std::max(scale, std::abs(wanted[i]));
  }
  return apart == 0 ? 0 : apart / std::max(scale, 1e-300);
}

}  // namespace checker::rules
