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
/// of the positions, then all warps' sums are added in their order. The sums go to the index's row
/// or, with `words`, to the position's.
__global__ void __launch_bounds__(kWarps* kWarp)
    embedding_gradient_kernel(const float* gradient, const int64_t* indices, int64_t count,
                              int64_t width, float* result, int* words) {
  const int64_t position = blockIdx.x;
  const int64_t index = position < count ? indices[position] : -1;
  const bool counts = position < count && !is_repeated(indices, position, index);
  if (words != nullptr && blockIdx.y == 0 && threadIdx.x == 0) {
    words[position] = counts ? static_cast<int>(index) : -1;
  }
  if (!counts) return;
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
  result[(words != nullptr ? position : index) * width + column] = sum;
}

void launch(const float* gradient, const int64_t* indices, int64_t count, int64_t positions,
            int64_t width, float* result, int* words, cudaStream_t stream) {
  if (positions == 0) return;
  const dim3 grid(static_cast<unsigned>(positions),
                  static_cast<unsigned>((width + kColumns - 1) / kColumns));
  embedding_gradient_kernel<<<grid, kWarps * kWarp, 0, stream>>>(gradient, indices, count, width,
                                                                 result, words);
  check(cudaGetLastError(), "embedding_gradient");
}

__device__ const float* rows_of(const RankRows& all, int64_t rank) {
  return all.all + rank * all.most * (all.width + 1);
}

__device__ const int* words_of(const RankRows& all, int64_t rank) {
  return reinterpret_cast<const int*>(rows_of(all, rank) + all.most * all.width);
}

/// Where each rank has the row of a word: slots[rank * words + word] is the number of the row.
__global__ void find_kernel(RankRows all, int* slots) {
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= all.ranks * all.most) return;
  const int64_t rank = i / all.most;
  const int64_t row = i % all.most;
  const int word = words_of(all, rank)[row];
  if (word >= 0) slots[rank * all.words + word] = static_cast<int>(row);
}

/// Warp: a row of a rank; that of the first rank to have its word makes the mean. Ranks are added
/// in their order, so that all come to the same bits.
template <int N>
__global__ void __launch_bounds__(kWarps* kWarp)
    mean_kernel(RankRows all, const int* slots, float* result) {
  using Floats = Vector<float, N>;
  const int64_t i = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (i >= all.ranks * all.most) return;
  const int64_t first = i / all.most;
  const int64_t word = words_of(all, first)[i % all.most];
  if (word < 0) return;
  for (int64_t rank = 0; rank < first; ++rank) {
    if (slots[rank * all.words + word] >= 0) return;
  }
  for (int64_t column = threadIdx.x % kWarp * N; column < all.width; column += kWarp * N) {
    Floats sum{};
    for (int64_t rank = first; rank < all.ranks; ++rank) {
      const int row = slots[rank * all.words + word];
      if (row < 0) continue;
      const auto part =
          *reinterpret_cast<const Floats*>(rows_of(all, rank) + row * all.width + column);
#pragma unroll
      for (int j = 0; j < N; ++j) sum.values[j] += part.values[j];
    }
#pragma unroll
    for (int j = 0; j < N; ++j) sum.values[j] /= static_cast<float>(all.ranks);
    *reinterpret_cast<Floats*>(result + word * all.width + column) = sum;
  }
}

}  // namespace

void embedding_gradient(const float* gradient, const int64_t* indices, int64_t count, int64_t width,
                        float* result, Stream stream) {
  launch(gradient, indices, count, count, width, result, nullptr, stream);
}

void embedding_rows(const float* gradient, const int64_t* indices, int64_t count, int64_t most,
                    int64_t width, float* rows, int* words, Stream stream) {
  launch(gradient, indices, count, most, width, rows, words, stream);
}

void mean_of_rows(const RankRows& all, int* slots, float* result, Stream stream) {
  const int64_t rows = all.ranks * all.most;
  if (rows == 0) return;
  const auto blocks = [&](int64_t each) { return static_cast<unsigned>((rows + each - 1) / each); };
  constexpr int kThreads = 256;
  find_kernel<<<blocks(kThreads), kThreads, 0, stream>>>(all, slots);
  const bool in_vectors = all.width % 4 == 0 && all.most % 4 == 0;
  const auto kernel = in_vectors ? mean_kernel<4> : mean_kernel<1>;
  kernel<<<blocks(kWarps), kWarps * kWarp, 0, stream>>>(all, slots, result);
  check(cudaGetLastError(), "mean_of_rows");
}

}  // namespace tasks::operators::kernels
