// Of fp32: a thread does one query with a group of the keys, then one query, or one key, with a
// group of the columns. The scores of a head are 32 x 32 at most.
#include <cmath>

#include "attention.cuh"
#include "device.cuh"
#include "kernels.hpp"
#include "philox.cuh"

namespace tasks::operators::kernels {
namespace {

constexpr int kMost = kMostAttentionSequence;
static_assert(kMost == kWarp);
constexpr int kGroups = 4;
constexpr int kThreads = kGroups * kMost;
constexpr int kKeys = kMost / kGroups;  // of a group

__device__ int row_of_thread() { return static_cast<int>(threadIdx.x) % kMost; }
__device__ int group_of_thread() { return static_cast<int>(threadIdx.x) / kMost; }

using Four = Vector<float, 4>;

/// The rows of queries, keys, values or gradients. What is beyond `Size` keeps threads that read a
/// row each out of each other's banks.
template <int Size>
struct Rows {
  alignas(16) float of[kMost][Size + 4];

  __device__ void load(const float* from, int64_t stride, int count) {
    constexpr int kVectors = Size / 4;
    for (int i = threadIdx.x; i < kMost * kVectors; i += kThreads) {
      const int row = i / kVectors, column = i % kVectors * 4;
      Four part{};
      if (row < count) part = *reinterpret_cast<const Four*>(from + row * stride + column);
      *reinterpret_cast<Four*>(of[row] + column) = part;
    }
  }
};

/// A number for each query and key. A row belongs to a key, and no two threads meet in a bank.
using Square = float[kMost][kMost + 1];

/// So much of a row in a thread's registers.
template <int Size>
struct Row {
  static_assert(Size % 4 == 0);
  Four of[Size / 4] = {};

  static __device__ Row copy(const float* from) {
    Row row;
#pragma unroll
    for (int i = 0; i < Size / 4; ++i) row.of[i] = reinterpret_cast<const Four*>(from)[i];
    return row;
  }

  __device__ float dot(const float* other) const {
    Four sums{};
#pragma unroll
    for (int i = 0; i < Size / 4; ++i) {
      const Four four = reinterpret_cast<const Four*>(other)[i];
#pragma unroll
      for (int j = 0; j < 4; ++j) sums.values[j] += of[i].values[j] * four.values[j];
    }
    return (sums.values[0] + sums.values[1]) + (sums.values[2] + sums.values[3]);
  }

  __device__ void add(float factor, const float* other) {
#pragma unroll
    for (int i = 0; i < Size / 4; ++i) {
      const Four four = reinterpret_cast<const Four*>(other)[i];
#pragma unroll
      for (int j = 0; j < 4; ++j) of[i].values[j] += factor * four.values[j];
    }
  }

  __device__ void store(float* to) const {
#pragma unroll
    for (int i = 0; i < Size / 4; ++i) reinterpret_cast<Four*>(to)[i] = of[i];
  }
};

/// What groups tell each other about their rows.
class Exchange {
 public:
  __device__ float greatest(float mine) {
    tell(mine);
    float all = parts_[0][row_of_thread()];
    for (int group = 1; group < kGroups; ++group) all = fmaxf(all, parts_[group][row_of_thread()]);
    return all;
  }
  __device__ float sum(float mine) {
    tell(mine);
    float all = 0;
    for (const auto& part : parts_) all += part[row_of_thread()];
    return all;
  }

 private:
  __device__ void tell(float mine) {
    __syncthreads();  // until the last ones have been read
    parts_[group_of_thread()][row_of_thread()] = mine;
    __syncthreads();
  }

  float parts_[kGroups][kMost];
};

/// A query's probabilities of its group's keys, and what dropout multiplies them by.
struct Probabilities {
  float of[kKeys], factors[kKeys];

  template <int Size>
  __device__ Probabilities(const CausalAttention& a, const Rows<Size>& queries,
                           const Rows<Size>& keys, Exchange& exchange) {
    const int query = row_of_thread(), first = group_of_thread() * kKeys;
    const float scale = rsqrtf(static_cast<float>(Size));
    const auto row = Row<Size>::copy(queries.of[query]);
    float greatest = -INFINITY;
#pragma unroll
    for (int j = 0; j < kKeys; ++j) {
      of[j] = first + j <= query ? row.dot(keys.of[first + j]) * scale : -INFINITY;
      greatest = fmaxf(greatest, of[j]);
    }
    const Exponential<float> exponential(exchange.greatest(greatest));
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kKeys; ++j) sum += of[j] = exponential(of[j]);
    const float inverse = 1 / exchange.sum(sum);
    const int64_t element = (int64_t(blockIdx.x) * kMost + query) * kMost + first;
#pragma unroll
    for (int j = 0; j < kKeys; ++j) {
      of[j] *= inverse;
      if (j % 4 == 0) {
        dropout_factors(a.random, a.dropout, element + j,
                        reinterpret_cast<float(&)[4]>(factors[j]));
      }
    }
  }
};

template <int Size>
__global__ void __launch_bounds__(kThreads) attention_kernel(CausalAttention a, float* result) {
  __shared__ Head<float, Rows, Size> head;
  __shared__ Square dropped;
  __shared__ Exchange exchange;
  const int count = static_cast<int>(a.sequence);
  const Place<Size> at(a);
  head.load(a, at);
  __syncthreads();
  const int query = row_of_thread(), group = group_of_thread();
  const Probabilities probabilities(a, head.queries, head.keys, exchange);
#pragma unroll
  for (int j = 0; j < kKeys; ++j) {
    dropped[group * kKeys + j][query] = probabilities.of[j] * probabilities.factors[j];
  }
  __syncthreads();
  constexpr int kColumns = Size / kGroups;
  Row<kColumns> sum;
#pragma unroll 8
  for (int key = 0; key < count; ++key) {
    sum.add(dropped[key][query], head.values.of[key] + group * kColumns);
  }
  if (query < count) sum.store(result + at.result + query * at.stride + group * kColumns);
}

template <int Size>
__global__ void __launch_bounds__(kThreads)
    attention_gradient_kernel(CausalAttention a, const float* gradient, float* result) {
  __shared__ Head<float, Rows, Size> head;
  __shared__ Rows<Size> gradients;
  __shared__ Square dropped, of_scores;
  __shared__ Exchange exchange;
  const int count = static_cast<int>(a.sequence);
  const Place<Size> at(a);
  head.load(a, at);
  gradients.load(gradient + at.result, at.stride, count);
  __syncthreads();

  const int mine = row_of_thread(), group = group_of_thread();  // mine: a query, later a key
  const Probabilities probabilities(a, head.queries, head.keys, exchange);
  const auto row = Row<Size>::copy(gradients.of[mine]);
  float of_probabilities[kKeys];
  float total = 0;  // of the softmax's gradient
#pragma unroll
  for (int j = 0; j < kKeys; ++j) {
    const float probability = probabilities.of[j], factor = probabilities.factors[j];
    of_probabilities[j] = row.dot(head.values.of[group * kKeys + j]) * factor;
    dropped[group * kKeys + j][mine] = probability * factor;
    total += probability * of_probabilities[j];
  }
  total = exchange.sum(total);
  const float scale = rsqrtf(static_cast<float>(Size));
#pragma unroll
  for (int j = 0; j < kKeys; ++j) {
    of_scores[group * kKeys + j][mine] =
        probabilities.of[j] * (of_probabilities[j] - total) * scale;
  }
  __syncthreads();

  constexpr int kColumns = Size / kGroups;
  const int first = group * kColumns;
  Row<kColumns> of_query, of_key, of_value;
#pragma unroll 8
  for (int other = 0; other < count; ++other) {
    of_query.add(of_scores[other][mine], head.keys.of[other] + first);
    of_key.add(of_scores[mine][other], head.queries.of[other] + first);
    of_value.add(dropped[mine][other], gradients.of[other] + first);
  }
  if (mine >= count) return;
  float* const to = result + at.projected + 3 * mine * at.stride + first;
  of_query.store(to);
  of_key.store(to + at.stride);
  of_value.store(to + 2 * at.stride);
}

}  // namespace

bool has_causal_attention(int64_t sequence, int64_t size) {
  return sequence <= kMost && (size == 16 || size == 32 || size == 64);
}

void causal_attention(const CausalAttention& arguments, void* result, Stream stream) {
  if (arguments.batch == 0 || arguments.sequence == 0) return;
  if (arguments.type == Type::bf16) {
    bf16_attention(arguments, result, stream);
  } else {
    with_head_size(arguments, [&](auto size) {
      attention_kernel<decltype(size)::value><<<attention_blocks(arguments), kThreads, 0, stream>>>(
          arguments, static_cast<float*>(result));
    });
  }
  check(cudaGetLastError(), "causal_attention");
}

void causal_attention_gradient(const CausalAttention& arguments, const void* gradient, void* result,
                               Stream stream) {
  if (arguments.batch == 0 || arguments.sequence == 0) return;
  if (arguments.type == Type::bf16) {
    bf16_attention_gradient(arguments, gradient, result, stream);
  } else {
    with_head_size(arguments, [&](auto size) {
      attention_gradient_kernel<decltype(size)::value>
          <<<attention_blocks(arguments), kThreads, 0, stream>>>(
              arguments, static_cast<const float*>(gradient), static_cast<float*>(result));
    });
  }
  check(cudaGetLastError(), "causal_attention_gradient");
}

}  // namespace tasks::operators::kernels
