#pragma once
/// Causal attention, from the projections of all heads to what its output layer takes.
#include <ATen/core/Tensor.h>

namespace tasks::operators {

/// Scaled dot-product attention (at::scaled_dot_product_attention) in which no position sees a
/// later one. projected: [batch, sequence, 3 * width]: for each position the queries of all heads,
/// then the keys, then the values; returns [batch, sequence, width]. dropout: the probability, 0 in
/// evaluation.
at::Tensor causal_attention(const at::Tensor& projected, int64_t heads, double dropout);

/// The same. On GPUs, of fp32 or bf16, for sequences of up to 32 and
/// heads of 16, 32 or 64, it is one kernel and its gradient another, which make no other layout and
/// keep nothing in between; results are the same bits every time. Elsewhere it is torch's operator.
/// Which probabilities drop is not what torch's drops.
at::Tensor fused_causal_attention(const at::Tensor& projected, int64_t heads, double dropout);

}  // namespace tasks::operators
