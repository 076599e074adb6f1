#pragma once
/// What a residual network has between two convolutions: batch norm, residual sum, ReLU.
#include <ATen/core/Tensor.h>

namespace tasks::operators {

/// A BatchNorm2d's own. Running statistics change with each call.
struct BatchNormParts {
  at::Tensor weight, bias;                ///< fp32 [channels]
  at::Tensor running_mean, running_var;   ///< likewise; undefined: not tracked
  at::Tensor num_batches_tracked;         ///< int64 []; undefined likewise
  double momentum = 0.1, epsilon = 1e-5;  ///< momentum: the weight of this batch
};

/// relu(batch_norm(input) + added), in training: by the mean and the variance of this batch. Of
/// what lies channels-last on a GPU, of fp32, bf16 or fp16 and of multiples of 8 channels (of fp32:
/// 4), it is three kernels, and its gradient another three, which keep of the output no more than
/// its signs. Sums are fp32 and have the same bits every time. Elsewhere it is torch's operators.
/// input: [batch, channels, height, width]; added: likewise, undefined: nothing.
at::Tensor batch_norm(const at::Tensor& input, const at::Tensor& added, const BatchNormParts& parts,
                      bool relu);

}  // namespace tasks::operators
