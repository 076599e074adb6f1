#pragma once
/// Random numbers of torch's generator for kernels of ours; GPUs only.
#include <ATen/core/Tensor.h>

#include <torch/csrc/autograd/custom_function.h>

#include "kernels/kernels.hpp"

namespace tasks::operators {

/// Takes four numbers of each subsequence, one call of Philox, from the device's default generator.
/// In a graph every replay draws others.
kernels::Random draw(at::Device device);

/// For a backward() that makes the same numbers again.
void keep(torch::autograd::AutogradContext& context, const kernels::Random& random);
kernels::Random kept(torch::autograd::AutogradContext& context);

}  // namespace tasks::operators
