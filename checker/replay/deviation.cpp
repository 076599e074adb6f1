#include "deviation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace replay {

double deviation(const Flat& got, const Flat& wanted) {
  if (got.size() != wanted.size() || got.empty()) return std::numeric_limits<double>::infinity();
  double worst = 0, scale = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double difference = std::abs(got[i] - wanted[i]);
    if (!(difference <= worst)) worst = difference;  // also NaN
    scale = std::max(scale, std::abs(wanted[i]));
  }
  if (worst == 0) return 0;
  return scale > 0 ? worst / scale : std::numeric_limits<double>::infinity();
}

}  // namespace replay
