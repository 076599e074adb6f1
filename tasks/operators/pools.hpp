#pragma once
/// What halves pictures. Of what lies channels-last on a GPU, of fp32, bf16 or fp16 and of
/// multiples of 8 channels (of fp32: 4), each is one kernel, and its gradient another. Elsewhere
/// they are torch's operators. input: [batch, channels, height, width].
#include <ATen/core/Tensor.h>

namespace tasks::operators {

/// Means of 2 x 2 pixels, of fewer at an odd edge: avg_pool2d(input, 2, ceil_mode).
at::Tensor average_pool(const at::Tensor& input);

/// The greatest of 3 x 3 pixels around every second one: max_pool2d(input, 3, stride 2, padding 1).
at::Tensor max_pool(const at::Tensor& input);

}  // namespace tasks::operators
