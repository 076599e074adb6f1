// A warp a row: what a row needs of itself stays in its registers.
#include <algorithm>

#include "device.cuh"
#include "kernels.hpp"
#include "philox.cuh"

namespace tasks::operators::kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kWarps = 8;
constexpr int kFour = 4;                   // columns that a lane moves at once
constexpr int64_t kChunk = kWarp * kFour;  // columns that a warp does
constexpr int64_t kMostBlocks = 264;       // two for each processor of an H100

__device__ float warp_sum(float value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(~0u, value, distance);
  }
  return value;
}

/// What `added` is multiplied by, in the four columns from `element` on: 0, or 1 / (1 - dropout).
__device__ void factors(const ResidualNorm& a, int64_t element, float (&result)[kFour]) {
  for (float& factor : result) factor = 1;
  if (a.dropout == 0) return;
  const auto bits = philox(a.random, static_cast<uint64_t>(element) / kFour);
  const auto probability = static_cast<float>(a.dropout);
  for (int j = 0; j < kFour; ++j) {
    const float uniform = static_cast<float>(bits.values[j] >> 8) * 0x1p-24f;
    result[j] = uniform < probability ? 0 : 1 / (1 - probability);
  }
}

template <typename T>
__device__ Vector<T, kFour>& four(T* from, int64_t element) {
  return *reinterpret_cast<Vector<T, kFour>*>(from + element);
}
template <typename T>
__device__ const Vector<T, kFour>& four(const T* from, int64_t element) {
  return *reinterpret_cast<const Vector<T, kFour>*>(from + element);
}

template <typename Added, int kChunks>
__global__ void __launch_bounds__(kWarps* kWarp) norm_kernel(ResidualNorm a, float* output) {
  const int64_t row = int64_t(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  const int lane = threadIdx.x % kWarp;
  if (row >= a.rows) return;
  Vector<float, kFour> sums[kChunks];
  float total = 0;
#pragma unroll
  for (int c = 0; c < kChunks; ++c) {
    const int64_t column = c * kChunk + lane * kFour;
    if (column >= a.width) continue;
    const int64_t at = row * a.width + column;
    const auto added = four(static_cast<const Added*>(a.added), at);
    float factor[kFour];
    factors(a, at, factor);
    sums[c] = four(a.residual, at);
    for (int j = 0; j < kFour; ++j) {
      sums[c].values[j] += factor[j] * widen(added.values[j]);
      total += sums[c].values[j];
    }
    four(a.sum, at) = sums[c];
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
    four(output, row * a.width + column) = result;
  }
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
      const auto output = four(g.output, row * a.width + column);
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
      float factor[kFour];
      factors(a, at, factor);
      Vector<float, kFour> residual;
      Vector<Added, kFour> added;
      for (int j = 0; j < kFour; ++j) {
        residual.values[j] = rstd * (scaled[c][j] - all - normal[c][j] * along);
        added.values[j] = narrow<Added>(factor[j] * residual.values[j]);
      }
      four(g.residual, at) = residual;
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
  float* sums = g.parameters + int64_t(blockIdx.x) * 2 * a.width;
  for (int64_t column = threadIdx.x; column < a.width; column += kWarps * kWarp) {
    sums[column] = of_weight[column];
    sums[a.width + column] = of_bias[column];
  }
}

template <typename Added, int kChunks>
void launch(const ResidualNorm& a, float* output, const ResidualNormGradients* g,
            cudaStream_t stream) {
  if (g != nullptr) {
    norm_gradients_kernel<Added, kChunks>
        <<<static_cast<unsigned>(norm_blocks(a.rows)), kWarps * kWarp, 0, stream>>>(a, *g);
  } else {
    const auto blocks = static_cast<unsigned>((a.rows + kWarps - 1) / kWarps);
    norm_kernel<Added, kChunks><<<blocks, kWarps * kWarp, 0, stream>>>(a, output);
  }
  check(cudaGetLastError(), "residual_norm");
}

template <typename Added>
void launch_for_width(const ResidualNorm& a, float* output, const ResidualNormGradients* g,
                      cudaStream_t stream) {
  if (a.width <= kChunk) return launch<Added, 1>(a, output, g, stream);
  if (a.width <= 2 * kChunk) return launch<Added, 2>(a, output, g, stream);
  if (a.width <= 4 * kChunk) return launch<Added, 4>(a, output, g, stream);
  launch<Added, 8>(a, output, g, stream);
}

void launch_for_type(const ResidualNorm& a, float* output, const ResidualNormGradients* g,
                     cudaStream_t stream) {
  if (a.rows == 0) return;
  a.type == Type::bf16 ? launch_for_width<__nv_bfloat16>(a, output, g, stream)
                       : launch_for_width<float>(a, output, g, stream);
}

}  // namespace

int64_t norm_blocks(int64_t rows) {
  return std::min(kMostBlocks, std::max<int64_t>((rows + kWarps - 1) / kWarps, 1));
}

void residual_norm(const ResidualNorm& arguments, float* output, Stream stream) {
  launch_for_type(arguments, output, nullptr, stream);
}

void residual_norm_gradients(const ResidualNorm& arguments, const ResidualNormGradients& gradients,
                             Stream stream) {
  launch_for_type(arguments, nullptr, &gradients, stream);
}

}  // namespace tasks::operators::kernels
