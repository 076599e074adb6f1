// Which rows an index picked is found by looking at all indices, which stay in every processor's
// cache, instead of by sorting them.
#include "device.cuh"
#include "kernels.hpp"

namespace tasks::operators::kernels {
namespace {

constexpr int kWarps = 8;
constexpr int kColumns = 4 * kWarp;  // of a block

/// True for all threads if an earlier position has this index: that one's block adds up.
__device__ bool is_repeated(const int64_t* indices, int64_t position, int64_t index) {
  bool seen = false;
  for (int64_t i = threadIdx.x; i < position; i += kWarps * kWarp) seen |= indices[i] == index;
  return __syncthreads_or(seen);
}

/// Block: the position blockIdx.x in `indices`, and kColumns columns. Each warp adds up a stretch
/// of the positions, then all warps' sums are added in their order.
__global__ void __launch_bounds__(kWarps* kWarp)
    embedding_gradient_kernel(const float* gradient, const int64_t* indices, int64_t count,
                              int64_t width, float* result) {
  const int64_t position = blockIdx.x;
  const int64_t index = indices[position];
  if (is_repeated(indices, position, index)) return;
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  const int64_t first_column = int64_t(blockIdx.y) * kColumns + lane;
  const int64_t stretch = (count - position + kWarps - 1) / kWarps;
  const int64_t begin = position + warp * stretch;
  const int64_t end = min(begin + stretch, count);
  float sums[4] = {};
  for (int64_t base = begin; base < end; base += kWarp) {
    const bool mine = base + lane < end && indices[base + lane] == index;
    for (unsigned found = __ballot_sync(~0u, mine); found != 0; found &= found - 1) {
      const float* row = gradient + (base + __ffs(static_cast<int>(found)) - 1) * width;
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        if (first_column + k * kWarp < width) sums[k] += row[first_column + k * kWarp];
      }
    }
  }
  __shared__ float of_warps[kWarps][kColumns];
  for (int k = 0; k < 4; ++k) of_warps[warp][lane + k * kWarp] = sums[k];
  __syncthreads();
  const int64_t column = int64_t(blockIdx.y) * kColumns + threadIdx.x;
  if (threadIdx.x >= kColumns || column >= width) return;
  float sum = 0;
  for (int w = 0; w < kWarps; ++w) sum += of_warps[w][threadIdx.x];
  result[index * width + column] = sum;
}

}  // namespace

void embedding_gradient(const float* gradient, const int64_t* indices, int64_t count, int64_t width,
                        float* result, Stream stream) {
  if (count == 0) return;
  const dim3 grid(static_cast<unsigned>(count),
                  static_cast<unsigned>((width + kColumns - 1) / kColumns));
  embedding_gradient_kernel<<<grid, kWarps * kWarp, 0, stream>>>(gradient, indices, count, width,
                                                                 result);
  check(cudaGetLastError(), "embedding_gradient");
}

}  // namespace tasks::operators::kernels
