#pragma once
#include <vector>

namespace replay {

/// Parameters or gradients one after the other, in the order of the record.
using Flat = std::vector<double>;

/// Largest difference over the largest element of `wanted`; infinite if sizes differ.
double deviation(const Flat& got, const Flat& wanted);

}  // namespace replay
