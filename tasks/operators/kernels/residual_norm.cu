// A warp a row: what a row needs of itself stays in its registers.
#include <algorithm>

#include "device.cuh"
#include "kernels.hpp"
#include "philox.cuh"

namespace tasks::operators::kernels {
namespace {

constexpr int kWarps = 8;
constexpr int kFour = 4;                   // columns that a lane moves at once
constexpr int64_t kChunk = kWarp * kFour;  // columns that a warp does
constexpr int64_t kMostBlocks = 264;       // two for each processor of an H100
constexpr int kMergers = 32;               // warps that share the blocks' sums

template <typename T>
__device__ Vector<T, kFour>& four(T* from, int64_t element) {
  return *reinterpret_cast<Vector<T, kFour>*>(from + element);
}
template <typename T>
__device__ const Vector<T, kFour>& four(const T* from, int64_t element) {
  return *reinterpret_cast<const Vector<T, kFour>*>(from + element);
}

/// And keeps the sum.
template <typename Added>
__device__ void add(const ResidualNorm& a, int64_t element, Vector<float, kFour>& to) {
  const auto added = four(static_cast<const Added*>(a.added), element);
  float factor[kFour];
  dropout_factors(a.random, a.dropout, element, factor);
  for (int j = 0; j < kFour; ++j) to.values[j] += factor[j] * widen(added.values[j]);
  four(a.sum, element) = to;
}

template <typename Added, int kChunks>
__global__ void __launch_bounds__(kWarps* kWarp)
    norm_kernel(ResidualNorm a, float* output, __nv_bfloat16* narrow_output) {
  const int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (row >= a.rows) return;
  Vector<float, kFour> sums[kChunks];
  float total = 0;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int64_t column = c * kChunk + lane * kFour;
    if (column >= a.width) continue;
    sums[c] = four(a.residual, row * a.width + column);
    if (a.added != nullptr) add<Added>(a, row * a.width + column, sums[c]);
    for (const float value : sums[c].values) total += value;
  }
  const float mean = warp_sum(total) / static_cast<float>(a.width);
  float squares = 0;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    if (c * kChunk + lane * kFour >= a.width) continue;
    for (const float value : sums[c].values) squares += (value - mean) * (value - mean);
  }
  const float rstd =
      rsqrtf(warp_sum(squares) / static_cast<float>(a.width) + static_cast<float>(a.epsilon));
  if (lane == 0) a.mean[row] = mean, a.rstd[row] = rstd;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int64_t column = c * kChunk + lane * kFour;
    if (column >= a.width) continue;
    const auto weight = four(a.weight, column);
    auto result = four(a.bias, column);
    for (int j = 0; j < kFour; ++j) {
      result.values[j] += (sums[c].values[j] - mean) * rstd * weight.values[j];
    }
    if (output != nullptr) four(output, row * a.width + column) = result;
    if (narrow_output == nullptr) continue;
    Vector<__nv_bfloat16, kFour> rounded;
    for (int j = 0; j < kFour; ++j) rounded.values[j] = narrow<__nv_bfloat16>(result.values[j]);
    four(narrow_output, row * a.width + column) = rounded;
  }
}

/// What the output's gradient is, in four columns from `element` on.
__device__ Vector<float, kFour> gradient_at(const ResidualNormGradients& g, int64_t element) {
  Vector<float, kFour> sum{};
  if (g.output != nullptr) sum = four(g.output, element);
  if (g.narrow == nullptr) return sum;
  const auto narrow = four(static_cast<const __nv_bfloat16*>(g.narrow), element);
  for (int j = 0; j < kFour; ++j) sum.values[j] += widen(narrow.values[j]);
  return sum;
}

template <typename Added, int kChunks>
__global__ void __launch_bounds__(kWarps* kWarp)
    norm_gradients_kernel(ResidualNorm a, ResidualNormGradients g) {
  const int warp = threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  float weights[kChunks][kFour] = {}, biases[kChunks][kFour] = {};
  for (int64_t row = int64_t(blockIdx.x) * kWarps + warp; row < a.rows; row += gridDim.x * kWarps) {
    const float mean = a.mean[row], rstd = a.rstd[row];
    float normal[kChunks][kFour] = {}, scaled[kChunks][kFour] = {};
    float along = 0, all = 0;
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int64_t column = c * kChunk + lane * kFour;
      if (column >= a.width) continue;
      const auto sum = four(static_cast<const float*>(a.sum), row * a.width + column);
      const auto output = gradient_at(g, row * a.width + column);
      const auto weight = four(a.weight, column);
      for (int j = 0; j < kFour; ++j) {
        normal[c][j] = (sum.values[j] - mean) * rstd;
        scaled[c][j] = output.values[j] * weight.values[j];
        along += scaled[c][j] * normal[c][j];
        all += scaled[c][j];
        weights[c][j] += output.values[j] * normal[c][j];
        biases[c][j] += output.values[j];
      }
    }
    along = warp_sum(along) / static_cast<float>(a.width);
    all = warp_sum(all) / static_cast<float>(a.width);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int64_t column = c * kChunk + lane * kFour;
      if (column >= a.width) continue;
      const int64_t at = row * a.width + column;
      Vector<float, kFour> residual{};
      if (g.sum != nullptr) residual = four(g.sum, at);
      for (int j = 0; j < kFour; ++j) {
        residual.values[j] += rstd * (scaled[c][j] - all - normal[c][j] * along);
      }
      four(g.residual, at) = residual;
      if (g.added == nullptr) continue;
      float factor[kFour];
      dropout_factors(a.random, a.dropout, at, factor);
      Vector<Added, kFour> added;
      for (int j = 0; j < kFour; ++j)
        added.values[j] = narrow<Added>(factor[j] * residual.values[j]);
      four(static_cast<Added*>(g.added), at) = added;
    }
  }
  // The warps' sums, one after the other: the same bits every time.
  __shared__ float of_weight[kMostNormWidth], of_bias[kMostNormWidth];
  for (int turn = 0; turn < kWarps; ++turn) {
    for (int c = 0; c < kChunks && warp == turn; ++c) {
      for (int j = 0; j < kFour; ++j) {
        const int64_t column = c * kChunk + lane * kFour + j;
        if (column >= a.width) continue;
        of_weight[column] = (turn > 0 ? of_weight[column] : 0) + weights[c][j];
        of_bias[column] = (turn > 0 ? of_bias[column] : 0) + biases[c][j];
      }
    }
    __syncthreads();
  }
  float* sums = g.blocks + int64_t(blockIdx.x) * 2 * a.width;
  for (int64_t column = threadIdx.x; column < a.width; column += kWarps * kWarp) {
    sums[column] = of_weight[column];
    sums[a.width + column] = of_bias[column];
  }
}

/// The blocks' sums in one: a block has 32 columns, and every warp adds up some blocks of them.
__global__ void __launch_bounds__(kWarp* kMergers)
    merge_kernel(const float* sums, int64_t blocks, int64_t columns, float* result) {
  __shared__ float shared[kMergers][kWarp];
  const int lane = threadIdx.x % kWarp, merger = threadIdx.x / kWarp;
  const int64_t column = int64_t(blockIdx.x) * kWarp + lane;
  float mine = 0;
  if (column < columns) {
#pragma unroll 4
    for (int64_t i = merger; i < blocks; i += kMergers) mine += sums[i * columns + column];
  }
  shared[merger][lane] = mine;
  __syncthreads();
  if (merger != 0 || column >= columns) return;
  for (int other = 1; other < kMergers; ++other) mine += shared[other][lane];
  result[column] = mine;
}

struct Outputs {
  float* wide = nullptr;
  __nv_bfloat16* narrow = nullptr;
};

template <typename Added, int kChunks>
void launch(const ResidualNorm& a, const Outputs& to, const ResidualNormGradients* g,
            cudaStream_t stream) {
  if (g != nullptr) {
    norm_gradients_kernel<Added, kChunks>
        <<<static_cast<unsigned>(norm_blocks(a.rows)), kWarps * kWarp, 0, stream>>>(a, *g);
    const auto blocks = static_cast<unsigned>((2 * a.width + kWarp - 1) / kWarp);
    merge_kernel<<<blocks, kWarp * kMergers, 0, stream>>>(g->blocks, norm_blocks(a.rows),
                                                          2 * a.width, g->parameters);
  } else {
    const auto blocks = static_cast<unsigned>((a.rows + kWarps - 1) / kWarps);
    norm_kernel<Added, kChunks><<<blocks, kWarps * kWarp, 0, stream>>>(a, to.wide, to.narrow);
  }
  check(cudaGetLastError(), "residual_norm");
}

template <typename Added>
void launch_for_width(const ResidualNorm& a, const Outputs& to, const ResidualNormGradients* g,
                      cudaStream_t stream) {
  if (a.width <= kChunk) return launch<Added, 1>(a, to, g, stream);
  if (a.width <= 2 * kChunk) return launch<Added, 2>(a, to, g, stream);
  if (a.width <= 4 * kChunk) return launch<Added, 4>(a, to, g, stream);
  launch<Added, 8>(a, to, g, stream);
}

void launch_for_type(const ResidualNorm& a, const Outputs& to, const ResidualNormGradients* g,
                     cudaStream_t stream) {
  if (a.rows == 0) return;
  a.type == Type::bf16 ? launch_for_width<__nv_bfloat16>(a, to, g, stream)
                       : launch_for_width<float>(a, to, g, stream);
}

}  // namespace

int64_t norm_blocks(int64_t rows) {
  return std::min(kMostBlocks, std::max<int64_t>((rows + kWarps - 1) / kWarps, 1));
}

void residual_norm(const ResidualNorm& arguments, float* output, void* narrow, Stream stream) {
  launch_for_type(arguments, {output, static_cast<__nv_bfloat16*>(narrow)}, nullptr, stream);
}

void residual_norm_gradients(const ResidualNorm& arguments, const ResidualNormGradients& gradients,
                             Stream stream) {
  launch_for_type(arguments, {}, &gradients, stream);
}

}  // namespace tasks::operators::kernels
