// Two passes over the logits: each block reads a row, then each thread writes a few columns.
#include <algorithm>
#include <cmath>

#include "device.cuh"
#include "kernels.hpp"

namespace tasks::operators::kernels {
namespace {

constexpr int kRowThreads = 512;
constexpr int kColumnThreads = 256;
constexpr int64_t kLeastRows = 16;  // of a slab: fewer would write more sums than gradients
constexpr int64_t kMostSlabs = 64;

/// A softmax denominator that is still being added up: the sum of exp(value - maximum), which never
/// overflows (Milakov and Gimelshein 2018, https://arxiv.org/abs/1805.02867).
template <typename T>
struct Partial {
  Wide<T> maximum = -INFINITY;
  Wide<T> sum = 0;
  Wide<T> total = 0;  // of the values themselves

  __device__ void raise(Wide<T> to) {
    if (to <= maximum) return;
    sum *= Exponential<T>(to)(maximum);
    maximum = to;
  }

  __device__ void add(const Partial& other) {
    if (other.maximum == Wide<T>(-INFINITY)) return;
    raise(other.maximum);
    sum += other.sum * Exponential<T>(maximum)(other.maximum);
    total += other.total;
  }
};

template <typename T>
__device__ Partial<T> shuffled_down(const Partial<T>& mine, int distance) {
  Partial<T> other;
  other.maximum = __shfl_down_sync(~0u, mine.maximum, distance);
  other.sum = __shfl_down_sync(~0u, mine.sum, distance);
  other.total = __shfl_down_sync(~0u, mine.total, distance);
  return other;
}

/// The whole block's, in thread 0. Always added up in the same order.
template <typename T>
__device__ Partial<T> reduced(Partial<T> mine) {
  __shared__ Wide<T> maxima[kRowThreads / kWarp], sums[kRowThreads / kWarp],
      totals[kRowThreads / kWarp];
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    mine.add(shuffled_down(mine, distance));
  }
  if (threadIdx.x % kWarp == 0) {
    maxima[threadIdx.x / kWarp] = mine.maximum;
    sums[threadIdx.x / kWarp] = mine.sum;
    totals[threadIdx.x / kWarp] = mine.total;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < kRowThreads / kWarp; ++warp) {
      Partial<T> other;
      other.maximum = maxima[warp];
      other.sum = sums[warp];
      other.total = totals[warp];
      mine.add(other);
    }
  }
  return mine;
}

template <typename T, int N, bool kSmooth>
__global__ void __launch_bounds__(kRowThreads) losses_kernel(CrossEntropy a) {
  const int64_t row = blockIdx.x;
  const T* logits = static_cast<const T*>(a.logits) + row * a.vocabulary;
  Partial<T> mine;
  constexpr int kAtOnce = 4;  // loads on their way before the first is used
  constexpr int64_t kStride = int64_t(kRowThreads) * N;
  for (int64_t i = int64_t(threadIdx.x) * N; i < a.vocabulary; i += kAtOnce * kStride) {
    Vector<T, N> read[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (i + k * kStride < a.vocabulary) {
        read[k] = *reinterpret_cast<const Vector<T, N>*>(logits + i + k * kStride);
      } else {
        for (int j = 0; j < N; ++j) read[k].values[j] = narrow<T>(-INFINITY);
      }
    }
    Wide<T> greatest = mine.maximum;
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      for (int j = 0; j < N; ++j) greatest = max(greatest, widen(read[k].values[j]));
    }
    mine.raise(greatest);
    const Exponential<T> exponential(greatest);
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      for (int j = 0; j < N; ++j) {
        const Wide<T> value = widen(read[k].values[j]);
        mine.sum += exponential(value);
        if (kSmooth && i + k * kStride < a.vocabulary) mine.total += value;
      }
    }
  }
  mine = reduced(mine);
  if (threadIdx.x != 0) return;
  const Wide<T> log_sum = mine.maximum + log(mine.sum);
  static_cast<Wide<T>*>(a.log_sums)[row] = log_sum;
  const int64_t target = a.target[row];
  Wide<T> loss = 0;
  if (target != a.ignore_index) {
    if (target < 0 || target >= a.vocabulary) refuse(target, row, a.vocabulary);
    const auto smoothing = static_cast<Wide<T>>(a.label_smoothing);
    loss = log_sum - (1 - smoothing) * widen(logits[target]);
    if (kSmooth) loss -= smoothing * mine.total / static_cast<Wide<T>>(a.vocabulary);
  }
  static_cast<Wide<T>*>(a.losses)[row] = loss;
}

/// What one thread makes of its columns in one row: the gradient, instead of the logits.
template <typename T, int N>
__device__ void to_gradient(Vector<T, N>& logits, const CrossEntropy& a, int64_t row,
                            int64_t column, Wide<T> (&sums)[N]) {
  const auto smoothing = static_cast<Wide<T>>(a.label_smoothing);
  const Wide<T> everywhere = smoothing / static_cast<Wide<T>>(a.vocabulary);
  const int64_t target = a.target[row];
  const Exponential<T> exponential(static_cast<const Wide<T>*>(a.log_sums)[row]);
  const Wide<T> counts = target == a.ignore_index ? 0 : 1;
  const int64_t here = target - column;
  Wide<T> gradients[N];
  for (int j = 0; j < N; ++j) {
    gradients[j] = counts * (exponential(widen(logits.values[j])) - everywhere);
  }
  if (here >= 0 && here < N) {
    for (int j = 0; j < N; ++j) gradients[j] -= j == here ? 1 - smoothing : 0;
  }
  for (int j = 0; j < N; ++j) {
    sums[j] += gradients[j];
    logits.values[j] = narrow<T>(static_cast<Wide<T>>(a.gradient_factor) * gradients[j]);
  }
}

template <typename T, int N>
__global__ void __launch_bounds__(kColumnThreads)
    gradients_kernel(CrossEntropy a, int64_t rows_per_slab) {
  const int64_t column = (int64_t(blockIdx.x) * kColumnThreads + threadIdx.x) * N;
  if (column >= a.vocabulary) return;
  // The last rows first: of these most is still in the L2 cache, from the losses' kernel.
  const int64_t slab = gridDim.y - 1 - blockIdx.y;
  const int64_t first = slab * rows_per_slab;
  const int64_t end = min(first + rows_per_slab, a.rows);
  T* logits = static_cast<T*>(a.logits) + column;
  const auto vector_of = [&](int64_t row) {
    return reinterpret_cast<Vector<T, N>*>(logits + row * a.vocabulary);
  };
  Wide<T> sums[N] = {};
  constexpr int kAtOnce = 8;  // rows on their way before the first is written back
  for (int64_t row = first; row < end; row += kAtOnce) {
    Vector<T, N> vectors[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (row + k < end) vectors[k] = *vector_of(row + k);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      if (row + k >= end) continue;
      to_gradient(vectors[k], a, row + k, column, sums);
      *vector_of(row + k) = vectors[k];
    }
  }
  auto* total = static_cast<Wide<T>*>(a.column_sums) + slab * a.vocabulary + column;
  for (int j = 0; j < N; ++j) total[j] += sums[j];
}

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t rows_of_a_slab(int64_t rows) { return std::max(kLeastRows, divided_up(rows, kMostSlabs)); }

template <typename T, int N>
void launch_losses(const CrossEntropy& a, cudaStream_t stream) {
  const auto kernel =
      a.label_smoothing > 0 ? losses_kernel<T, N, true> : losses_kernel<T, N, false>;
  kernel<<<static_cast<unsigned>(a.rows), kRowThreads, 0, stream>>>(a);
}

template <typename T, int N>
void launch_gradients(const CrossEntropy& a, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(divided_up(a.vocabulary, int64_t(kColumnThreads) * N)),
                  static_cast<unsigned>(slabs(a.rows)));
  gradients_kernel<T, N><<<grid, kColumnThreads, 0, stream>>>(a, rows_of_a_slab(a.rows));
}

/// Vectors of 16 bytes, if every row begins where one may begin.
template <typename T>
bool has_vectors(const CrossEntropy& a) {
  return a.vocabulary % (16 / sizeof(T)) == 0 &&
         reinterpret_cast<std::uintptr_t>(a.logits) % 16 == 0;
}

template <typename T>
void losses_of(const CrossEntropy& a, cudaStream_t stream) {
  has_vectors<T>(a) ? launch_losses<T, 16 / sizeof(T)>(a, stream) : launch_losses<T, 1>(a, stream);
}

template <typename T>
void gradients_of(const CrossEntropy& a, cudaStream_t stream) {
  has_vectors<T>(a) ? launch_gradients<T, 16 / sizeof(T)>(a, stream)
                    : launch_gradients<T, 1>(a, stream);
}

}  // namespace

int64_t slabs(int64_t rows) { return divided_up(rows, rows_of_a_slab(rows)); }

void cross_entropy_losses(const CrossEntropy& arguments, Stream stream) {
  if (arguments.rows == 0) return;
  if (arguments.type == Type::fp64) losses_of<double>(arguments, stream);
  if (arguments.type == Type::fp32) losses_of<float>(arguments, stream);
  if (arguments.type == Type::bf16) losses_of<__nv_bfloat16>(arguments, stream);
  if (arguments.type == Type::fp16) losses_of<__half>(arguments, stream);
  check(cudaGetLastError(), "cross_entropy_losses");
}

void cross_entropy_gradients(const CrossEntropy& arguments, Stream stream) {
  if (arguments.rows == 0) return;
  if (arguments.type == Type::fp64) gradients_of<double>(arguments, stream);
  if (arguments.type == Type::fp32) gradients_of<float>(arguments, stream);
  if (arguments.type == Type::bf16) gradients_of<__nv_bfloat16>(arguments, stream);
  if (arguments.type == Type::fp16) gradients_of<__half>(arguments, stream);
  check(cudaGetLastError(), "cross_entropy_gradients");
}

}  // namespace tasks::operators::kernels
