#pragma once
/// A linear layer and its cross-entropy without logits; on Hopper GPUs only.
#include <ATen/core/Tensor.h>

namespace tasks::operators {

struct ExponentialLoss {
  at::Tensor losses;  ///< fp32 [rows]; 0 for ignored targets
  /// bf16 [rows, vocabulary], whose rows begin at multiples of 128 bytes. Times the factor of its
  /// row each is the gradient of the losses' sum by the logit. Undefined: not wanted.
  at::Tensor exponentials;
  at::Tensor factors;  ///< fp32 [rows]
};

/// Whether exponential_loss takes them: bf16 on a Hopper GPU, of a width that is a multiple of 8 up
/// to 128.
bool has_exponential_loss(const at::Tensor& hidden, const at::Tensor& weight);

/// Of the logits hidden weight^T + bias. hidden: [rows, width]; weight: [vocabulary, width]; bias:
/// [vocabulary]; target: int64 [rows].
ExponentialLoss exponential_loss(const at::Tensor& hidden, const at::Tensor& weight,
                                 const at::Tensor& bias, const at::Tensor& target,
                                 int64_t ignore_index, bool gradient);

/// What the gradients of weight and bias are made of: the sums over rows of exponential x factor x
/// hidden vector, fp32 [vocabulary, width], and of exponential x factor, fp32 [vocabulary].
struct WeightedSums {
  at::Tensor product, sums;
};
WeightedSums weighted_sums(const at::Tensor& exponentials, const at::Tensor& factors,
                           const at::Tensor& hidden);

}  // namespace tasks::operators
