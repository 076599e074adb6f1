#pragma once
/// What stands between the two linear layers of a feed-forward block, in one.
#include <ATen/core/Tensor.h>

namespace tasks::operators {

/// dropout(relu(input)). On GPUs, of fp32 or bf16, it is one kernel, and its gradient another,
/// which reads from the result what was dropped. Elsewhere, and where the number of elements is not
/// a multiple of 8, it is torch's operators. Which elements drop is not what torch's dropout drops.
/// dropout: the probability, below 1; 0 in evaluation.
at::Tensor relu_dropout(const at::Tensor& input, double dropout);

}  // namespace tasks::operators
