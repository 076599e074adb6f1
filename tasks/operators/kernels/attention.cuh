#pragma once
/// What both kinds of attention share: a block does one head of one sample.
#include <type_traits>

#include "kernels.hpp"

namespace tasks::operators::kernels {

/// Where a block's head begins, and how far its rows are apart: those of projections, thrice.
template <int Size>
struct Place {
  int64_t stride, projected, result;

  __device__ explicit Place(const CausalAttention& a) {
    const int64_t width = a.heads * Size;
    const int64_t sample = blockIdx.x / a.heads, head = blockIdx.x % a.heads;
    stride = width;
    result = sample * a.sequence * width + head * Size;
    projected = 3 * sample * a.sequence * width + head * Size;
  }
};

/// What a block works on, in shared memory.
template <typename Number, template <int> class Matrix, int Size>
struct Head {
  Matrix<Size> queries, keys, values;

  /// By all threads; a barrier must follow.
  __device__ void load(const CausalAttention& a, const Place<Size>& at) {
    const auto* from = static_cast<const Number*>(a.projected) + at.projected;
    const int count = static_cast<int>(a.sequence);
    queries.load(from, 3 * at.stride, count);
    keys.load(from + at.stride, 3 * at.stride, count);
    values.load(from + 2 * at.stride, 3 * at.stride, count);
  }
};

inline unsigned attention_blocks(const CausalAttention& a) {
  return static_cast<unsigned>(a.batch * a.heads);
}

/// f(size), the size of a head as a type.
template <typename F>
void with_head_size(const CausalAttention& a, const F& f) {
  if (a.size == 16) f(std::integral_constant<int, 16>());
  if (a.size == 32) f(std::integral_constant<int, 32>());
  if (a.size == 64) f(std::integral_constant<int, 64>());
}

/// Of bf16, in attention_bf16.cu.
void bf16_attention(const CausalAttention& arguments, void* result, Stream stream);
void bf16_attention_gradient(const CausalAttention& arguments, const void* gradient, void* result,
                             Stream stream);

}  // namespace tasks::operators::kernels
