#pragma once
/// Random numbers of torch's generator for kernels of ours; GPUs only.
#include <ATen/core/Tensor.h>

#include "kernels/kernels.hpp"

namespace tasks::operators {

/// Takes four numbers of each subsequence, one call of Philox, from the device's default generator.
/// In a graph every replay draws others.
kernels::Random draw(at::Device device);

}  // namespace tasks::operators
