#pragma once
/// The last linear layer of a classifier and its cross-entropy in one.
#include <ATen/core/Tensor.h>

#include "operators/narrow_copies.hpp"

namespace tasks::operators {

struct LinearCrossEntropyOptions {
  int64_t ignore_index = -100;     ///< targets that do not count
  double label_smoothing = 0;      ///< in [0, 1]
  NarrowCopies* copies = nullptr;  ///< given: products are of these copies, in their type
  int64_t chunk_rows = 0;          ///< rows of logits made at a time; 0: as suits
};

/// The sum over rows of cross_entropy(hidden weight^T + bias, target), as torch's with
/// Reduction::Sum, and differentiable by hidden, weight and bias. hidden: [rows, width]; weight:
/// [vocabulary, width]; bias: [vocabulary]; target: int64 [rows], a word or ignore_index. Returns a
/// scalar: fp32, or fp64 of fp64.
///
/// A large vocabulary makes the logits the largest tensor of a model. Here they are kept once: the
/// forward pass replaces them by their gradient and adds up the bias's on the way (as Hsu et al.,
/// Liger Kernel, 2024, https://arxiv.org/abs/2410.10989, section 3.2). Without gradients
/// (evaluation) no more than a chunk of them is ever there. On Hopper GPUs, of copies in bf16 that
/// are not too wide and without smoothing, they are never kept at all (see exponential_loss.hpp).
at::Tensor linear_cross_entropy(const at::Tensor& hidden, const at::Tensor& weight,
                                const at::Tensor& bias, const at::Tensor& target,
                                const LinearCrossEntropyOptions& options = {});

}  // namespace tasks::operators
