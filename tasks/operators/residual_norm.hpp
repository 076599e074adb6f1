#pragma once
/// The end of a transformer's block: dropout, residual sum and layer norm in one.
#include <ATen/core/Tensor.h>

namespace tasks::operators {

struct Normed {
  at::Tensor output;  ///< [..., width], of the residual's type
  at::Tensor narrow;  ///< the same in the type of what was added: of fp32, the same tensor
};

/// layer_norm(residual + dropout(added), weight, bias) over the last dimension. On GPUs, of fp32
/// (`added` may be bf16) and of a width that is a multiple of 4 up to 1,024, it is one kernel, and
/// its gradient another, which draws the dropout again instead of keeping it; the parameters'
/// gradients have the same bits every time. Elsewhere it is torch's operators. Which elements drop
/// is not what torch's dropout drops. residual, added: [..., width]; weight, bias: [width];
/// dropout: the probability, 0 in evaluation.
Normed residual_norm(const at::Tensor& residual, const at::Tensor& added, const at::Tensor& weight,
                     const at::Tensor& bias, double dropout, double epsilon = 1e-5);

struct Summed {
  at::Tensor sum;     ///< [..., width], of the residual's type
  at::Tensor normed;  ///< of the type of what was added
};

/// The beginning of a block whose norm comes first: residual + added, which goes on as the
/// residual, and its layer norm. Types, widths and kernels as above.
Summed sum_norm(const at::Tensor& residual, const at::Tensor& added, const at::Tensor& weight,
                const at::Tensor& bias, double epsilon = 1e-5);

/// The same without anything added: layer_norm(input, weight, bias).
at::Tensor layer_norm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                      double epsilon = 1e-5);

}  // namespace tasks::operators
