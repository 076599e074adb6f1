// What follows the exponentials: losses, factors of rows, and rows times their factors.
#include <cmath>

#include "device.cuh"
#include "exponentials.cuh"

namespace tasks::operators::kernels {
namespace {

constexpr int kMergers = 16;  // warps that share the partials of 32 rows
constexpr int kThreads = kWarp * kMergers;
// Beyond this, exponentials or the products made of them might overflow: 2^90.
constexpr float kMostSum = 1.2379401e27F;

__device__ const __nv_bfloat16* bf16(const void* pointer) {
  return static_cast<const __nv_bfloat16*>(pointer);
}

__device__ float logit(const ExponentialLosses& a, int64_t row, int64_t word) {
  const auto* hidden = bf16(a.hidden) + row * a.width;
  const auto* weight = bf16(a.weight) + word * a.width;
  float sum = widen(bf16(a.bias)[word]);
  for (int i = 0; i < a.width; ++i) sum = fmaf(widen(hidden[i]), widen(weight[i]), sum);
  return sum;
}

/// The whole block's: of its threads' values, in every thread.
__device__ float summed(float value, bool greatest) {
  __shared__ float values[kThreads];
  __syncthreads();
  values[threadIdx.x] = value;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x >= half) continue;
    const float other = values[threadIdx.x + half];
    values[threadIdx.x] = greatest ? max(values[threadIdx.x], other) : values[threadIdx.x] + other;
  }
  __syncthreads();
  return values[0];
}

/// A row some of whose logits are far above its target's, by the whole block: shifted by the
/// greatest of them. Slow and rare. Returns the sum.
__device__ float made_again(const ExponentialLosses& a, int64_t row, float& shift) {
  float greatest = -INFINITY;
  for (int64_t word = threadIdx.x; word < a.vocabulary; word += kThreads) {
    greatest = max(greatest, logit(a, row, word));
  }
  shift = summed(greatest, true);
  float sum = 0;
  for (int64_t word = threadIdx.x; word < a.vocabulary; word += kThreads) {
    const float value = QuickExponential(shift)(logit(a, row, word));
    sum += value;
    if (a.exponentials) {
      static_cast<__nv_bfloat16*>(a.exponentials)[row * a.stride + word] =
          narrow<__nv_bfloat16>(value);
    }
  }
  return summed(sum, false);
}

/// Of one row, by one thread. Probability less one is what counts at the target.
__device__ void finish(const ExponentialLosses& a, int64_t row, float sum, float shift) {
  const int64_t target = a.target[row];
  const bool counts = target != a.ignore_index;
  const float of_target = a.shifts[row] - shift;  // its logit, shifted
  a.losses[row] = counts ? log(sum) - of_target : 0;
  a.factors[row] = counts ? 1 / sum : 0;
  if (!counts || !a.exponentials) return;
  static_cast<__nv_bfloat16*>(a.exponentials)[row * a.stride + target] =
      narrow<__nv_bfloat16>(exp(of_target) - sum);
}

/// A block has 32 rows, whose partials its warps share.
__global__ void __launch_bounds__(kThreads) losses_kernel(ExponentialLosses a, int64_t parts) {
  __shared__ float shared[kMergers][kWarp];
  const int lane = threadIdx.x % kWarp, merger = threadIdx.x / kWarp;
  const int64_t first = int64_t(blockIdx.x) * kWarp;
  float mine = 0;
  if (first + lane < a.rows) {
#pragma unroll 8
    for (int64_t i = merger; i < parts; i += kMergers)
      mine += a.partials[i * a.rows + first + lane];
  }
  shared[merger][lane] = mine;
  __syncthreads();
  if (merger == 0) {
    for (int other = 1; other < kMergers; ++other) mine += shared[other][lane];
    shared[0][lane] = mine;
    if (first + lane < a.rows && mine <= kMostSum) {
      finish(a, first + lane, mine, a.shifts[first + lane]);
    }
  }
  __syncthreads();
  for (int i = 0; i < kWarp && first + i < a.rows; ++i) {
    if (shared[0][i] <= kMostSum) continue;  // nor is NaN
    float shift = 0;
    const float sum = made_again(a, first + i, shift);
    if (threadIdx.x == 0) finish(a, first + i, sum, shift);
  }
}

/// A block a row, a thread a column.
__global__ void weighted_kernel(const __nv_bfloat16* rows, const float* factors, int64_t width,
                                __nv_bfloat16* result) {
  const int64_t row = blockIdx.x;
  const int column = threadIdx.x;
  const float factor = factors[row];
  const auto rounded = narrow<__nv_bfloat16>(factor);
  __nv_bfloat16 value = narrow<__nv_bfloat16>(0);
  if (column < width) value = narrow<__nv_bfloat16>(factor * widen(rows[row * width + column]));
  if (column == width) value = rounded;
  if (column == width + 1) value = narrow<__nv_bfloat16>(factor - widen(rounded));
  result[row * (width + kWeightColumns) + column] = value;
}

/// A warp a row, a lane four columns at a time.
__global__ void split_kernel(const float* both, int64_t rows, int64_t width, float* product,
                             float* sums) {
  const int64_t row = int64_t(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  if (row >= rows) return;
  const float* from = both + row * (width + kWeightColumns);
  for (int64_t column = threadIdx.x % kWarp * 4; column < width; column += 4 * kWarp) {
    *reinterpret_cast<float4*>(product + row * width + column) =
        *reinterpret_cast<const float4*>(from + column);
  }
  if (threadIdx.x % kWarp == 0) sums[row] = from[width] + from[width + 1];
}

}  // namespace

bool has_exponential_losses(int device) {
  int major = 0;
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        "compute capability");
  return major == 9;
}

void exponential_losses(const ExponentialLosses& a, Stream stream) {
  if (a.rows == 0) return;
  make_exponentials(a, stream);
  losses_kernel<<<static_cast<unsigned>((a.rows + kWarp - 1) / kWarp), kThreads, 0, stream>>>(
      a, exponential_parts(a.vocabulary));
  check(cudaGetLastError(), "exponential_losses");
}

void weighted_rows(const void* rows, const float* factors, int64_t count, int64_t width,
                   void* result, Stream stream) {
  if (count == 0) return;
  weighted_kernel<<<static_cast<unsigned>(count), static_cast<unsigned>(width + kWeightColumns), 0,
                    stream>>>(static_cast<const __nv_bfloat16*>(rows), factors, width,
                              static_cast<__nv_bfloat16*>(result));
  check(cudaGetLastError(), "weighted_rows");
}

void split_sums(const float* both, int64_t rows, int64_t width, float* product, float* sums,
                Stream stream) {
  if (rows == 0) return;
  constexpr int kRows = 8;  // of a block
  split_kernel<<<static_cast<unsigned>((rows + kRows - 1) / kRows), kRows * kWarp, 0, stream>>>(
      both, rows, width, product, sums);
  check(cudaGetLastError(), "split_sums");
}

}  // namespace tasks::operators::kernels
