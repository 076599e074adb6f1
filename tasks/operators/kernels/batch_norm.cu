// A thread has the same few channels of many rows, so that what belongs to channels stays in its
// registers.
#include <algorithm>

#include "pictures.cuh"

namespace tasks::operators::kernels {
namespace {

constexpr int64_t kMostSlabs = 528;  // of sums: four for each processor of an H100
constexpr int kMergers = 32;         // warps that share the slabs' sums

/// How threads share the work: `lanes` of them stand side by side in a row.
struct Tiling {
  int lanes;
  unsigned groups;  ///< of channels, each has blocks of its own
  int64_t passes;   ///< blocks that would have all rows, one row a thread
};

Tiling tiling_of(int64_t vectors, int64_t rows) {
  int lanes = kWarp;
  while (vectors % lanes != 0) lanes /= 2;
  const int64_t strips = kThreads / lanes;
  return {lanes, static_cast<unsigned>(vectors / lanes), (rows + strips - 1) / strips};
}

// Each thread has a few rows, or there are more blocks than processors can hold.
unsigned blocks_of(const Tiling& tiling, int64_t most) {
  constexpr int64_t kRows = 4;
  return static_cast<unsigned>(std::clamp<int64_t>((tiling.passes + kRows - 1) / kRows, 1,
                                                   std::max<int64_t>(most / tiling.groups, 1)));
}

/// What a thread works at: every step-th row from `row` on, kVector channels from `channel` on.
template <typename T>
struct Part {
  int64_t row, step, channel;
  __device__ explicit Part(int lanes)
      : row(int64_t(blockIdx.x) * (kThreads / lanes) + threadIdx.x / lanes),
        step(int64_t(gridDim.x) * (kThreads / lanes)),
        channel((int64_t(blockIdx.y) * lanes + threadIdx.x % lanes) * kVector<T>) {}
};

template <typename T>
__device__ Channels<T> load(const void* from, int64_t element) {
  return *reinterpret_cast<const Channels<T>*>(static_cast<const T*>(from) + element);
}
template <typename T>
__device__ void store(void* to, int64_t element, const Channels<T>& values) {
  *reinterpret_cast<Channels<T>*>(static_cast<T*>(to) + element) = values;
}

/// Two sums of each channel over the block's rows, in the same order every time.
template <int kChannels>
__device__ void merge_block(const float (&first)[kChannels], const float (&second)[kChannels],
                            int lanes, int64_t channel, int64_t channels, float* partials) {
  __shared__ float sums[2 * kChannels][kThreads];
  const int thread = threadIdx.x;
#pragma unroll
  for (int j = 0; j < kChannels; ++j) {
    sums[j][thread] = first[j];
    sums[kChannels + j][thread] = second[j];
  }
  for (int half = kThreads / 2; half >= lanes; half /= 2) {
    __syncthreads();
    if (thread >= half) continue;
#pragma unroll
    for (int j = 0; j < 2 * kChannels; ++j) sums[j][thread] += sums[j][thread + half];
  }
  if (thread >= lanes) return;
  float* const slab = partials + int64_t(blockIdx.x) * 2 * channels + channel;
#pragma unroll
  for (int j = 0; j < kChannels; ++j) {
    slab[j] = sums[j][thread];
    slab[channels + j] = sums[kChannels + j][thread];
  }
}

/// Sums of differences from the first row and of their squares: a mean far from zero takes no
/// digits.
template <typename T>
__global__ void __launch_bounds__(kThreads) moments_kernel(BatchNorm a, int lanes) {
  const Part<T> part(lanes);
  const auto origin = load<T>(a.input, part.channel);
  float sums[kVector<T>] = {}, squares[kVector<T>] = {};
#pragma unroll 4
  for (int64_t row = part.row; row < a.rows; row += part.step) {
    const auto input = load<T>(a.input, row * a.channels + part.channel);
#pragma unroll
    for (int j = 0; j < kVector<T>; ++j) {
      const float difference = widen(input.values[j]) - widen(origin.values[j]);
      sums[j] += difference;
      squares[j] += difference * difference;
    }
  }
  merge_block(sums, squares, lanes, part.channel, a.channels, a.partials);
}

/// The slabs' two sums of the thread's channel, in the threads of the first warp.
__device__ float2 merged(const float* partials, int64_t slabs, int64_t channels, int64_t channel) {
  __shared__ float2 shared[kMergers][kWarp];
  const int lane = threadIdx.x % kWarp, merger = threadIdx.x / kWarp;
  float2 sums{0, 0};
  if (channel < channels) {
#pragma unroll 4
    for (int64_t slab = merger; slab < slabs; slab += kMergers) {
      sums.x += partials[slab * 2 * channels + channel];
      sums.y += partials[(slab * 2 + 1) * channels + channel];
    }
  }
  shared[merger][lane] = sums;
  __syncthreads();
  if (merger == 0) {
    for (int other = 1; other < kMergers; ++other) {
      sums.x += shared[other][lane].x;
      sums.y += shared[other][lane].y;
    }
  }
  return sums;
}

__device__ int64_t merged_channel() { return int64_t(blockIdx.x) * kWarp + threadIdx.x % kWarp; }

template <typename T>
__global__ void __launch_bounds__(kWarp* kMergers)
    statistics_kernel(BatchNorm a, int64_t slabs, float epsilon, RunningStatistics running) {
  const int64_t channel = merged_channel();
  const float2 sums = merged(a.partials, slabs, a.channels, channel);
  if (threadIdx.x >= kWarp || channel >= a.channels) return;
  const float count = static_cast<float>(a.rows), difference = sums.x / count;
  const float mean = widen(static_cast<const T*>(a.input)[channel]) + difference;
  const float squares = fmaxf(sums.y - sums.x * difference, 0);
  a.mean[channel] = mean;
  a.rstd[channel] = rsqrtf(squares / count + epsilon);
  const float weight = static_cast<float>(running.momentum);
  if (running.mean != nullptr) {
    running.mean[channel] = (1 - weight) * running.mean[channel] + weight * mean;
  }
  if (running.variance != nullptr) {
    running.variance[channel] =
        (1 - weight) * running.variance[channel] + weight * squares / (count - 1);
  }
  if (running.batches != nullptr && channel == 0) ++*running.batches;
}

template <typename T, bool kAdds>
__global__ void __launch_bounds__(kThreads) output_kernel(BatchNorm a, int lanes, void* output) {
  const Part<T> part(lanes);
  float factor[kVector<T>], offset[kVector<T>];
#pragma unroll
  for (int j = 0; j < kVector<T>; ++j) {
    factor[j] = a.weight[part.channel + j] * a.rstd[part.channel + j];
    offset[j] = a.bias[part.channel + j] - a.mean[part.channel + j] * factor[j];
  }
#pragma unroll 4
  for (int64_t row = part.row; row < a.rows; row += part.step) {
    const int64_t element = row * a.channels + part.channel;
    const auto input = load<T>(a.input, element);
    Channels<T> added{}, result;
    if (kAdds) added = load<T>(a.added, element);
    unsigned positive = 0;
#pragma unroll
    for (int j = 0; j < kVector<T>; ++j) {
      float value = fmaf(widen(input.values[j]), factor[j], offset[j]);
      if (kAdds) value += widen(added.values[j]);
      const bool passes = a.positive == nullptr || !(value <= 0);  // NaN passes, as in torch's
      positive |= unsigned(passes) << j;
      result.values[j] = narrow<T>(passes ? value : 0);
    }
    store<T>(output, element, result);
    if (a.positive != nullptr) a.positive[element / kVector<T>] = static_cast<uint8_t>(positive);
  }
}

/// The gradient of what ReLU took, from `element` on.
template <typename T>
__device__ void load_gradient(const BatchNorm& a, const void* output, int64_t element,
                              float (&gradient)[kVector<T>]) {
  const auto loaded = load<T>(output, element);
  const unsigned positive = a.positive == nullptr ? ~0u : a.positive[element / kVector<T>];
#pragma unroll
  for (int j = 0; j < kVector<T>; ++j) {
    gradient[j] = (positive >> j & 1) != 0 ? widen(loaded.values[j]) : 0;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    gradient_sums_kernel(BatchNorm a, int lanes, const void* output) {
  const Part<T> part(lanes);
  float mean[kVector<T>], sums[kVector<T>] = {}, along[kVector<T>] = {};
#pragma unroll
  for (int j = 0; j < kVector<T>; ++j) mean[j] = a.mean[part.channel + j];
#pragma unroll 4
  for (int64_t row = part.row; row < a.rows; row += part.step) {
    const int64_t element = row * a.channels + part.channel;
    float gradient[kVector<T>];
    load_gradient<T>(a, output, element, gradient);
    const auto input = load<T>(a.input, element);
#pragma unroll
    for (int j = 0; j < kVector<T>; ++j) {
      sums[j] += gradient[j];
      along[j] += gradient[j] * (widen(input.values[j]) - mean[j]);
    }
  }
  merge_block(sums, along, lanes, part.channel, a.channels, a.partials);
}

__global__ void __launch_bounds__(kWarp* kMergers)
    parameter_gradients_kernel(BatchNorm a, int64_t slabs, float* parameters) {
  const int64_t channel = merged_channel();
  const float2 sums = merged(a.partials, slabs, a.channels, channel);
  if (threadIdx.x >= kWarp || channel >= a.channels) return;
  parameters[channel] = sums.y * a.rstd[channel];
  parameters[a.channels + channel] = sums.x;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    input_gradient_kernel(BatchNorm a, int lanes, BatchNormGradients g) {
  const Part<T> part(lanes);
  // factor * (gradient - mean of gradients - normal * mean of gradient * normal)
  float factor[kVector<T>], slope[kVector<T>], offset[kVector<T>];
#pragma unroll
  for (int j = 0; j < kVector<T>; ++j) {
    const int64_t channel = part.channel + j;
    const float rstd = a.rstd[channel], count = static_cast<float>(a.rows);
    factor[j] = a.weight[channel] * rstd;
    slope[j] = -factor[j] * rstd * g.parameters[channel] / count;
    offset[j] =
        -factor[j] * g.parameters[a.channels + channel] / count - slope[j] * a.mean[channel];
  }
#pragma unroll 4
  for (int64_t row = part.row; row < a.rows; row += part.step) {
    const int64_t element = row * a.channels + part.channel;
    float gradient[kVector<T>];
    load_gradient<T>(a, g.output, element, gradient);
    const auto input = load<T>(a.input, element);
    Channels<T> result, added;
#pragma unroll
    for (int j = 0; j < kVector<T>; ++j) {
      result.values[j] = narrow<T>(
          fmaf(factor[j], gradient[j], fmaf(slope[j], widen(input.values[j]), offset[j])));
      added.values[j] = narrow<T>(gradient[j]);
    }
    store<T>(g.input, element, result);
    if (g.added != nullptr) store<T>(g.added, element, added);
  }
}

struct Launch {
  Tiling tiling;
  dim3 sums, elements, merge;
  template <typename T>
  static Launch of(const BatchNorm& a) {
    const auto tiling = tiling_of(a.channels / kVector<T>, a.rows);
    return {.tiling = tiling,
            .sums = {blocks_of(tiling, kMostSlabs), tiling.groups},
            .elements = {blocks_of(tiling, 2 * kMostSlabs), tiling.groups},
            .merge = {static_cast<unsigned>((a.channels + kWarp - 1) / kWarp)}};
  }
};

template <typename T>
void forward(const BatchNorm& a, double epsilon, const RunningStatistics& running, void* output,
             cudaStream_t stream) {
  const auto launch = Launch::of<T>(a);
  const int lanes = launch.tiling.lanes;
  moments_kernel<T><<<launch.sums, kThreads, 0, stream>>>(a, lanes);
  statistics_kernel<T><<<launch.merge, kWarp * kMergers, 0, stream>>>(
      a, launch.sums.x, static_cast<float>(epsilon), running);
  const auto kernel = a.added != nullptr ? output_kernel<T, true> : output_kernel<T, false>;
  kernel<<<launch.elements, kThreads, 0, stream>>>(a, lanes, output);
  check(cudaGetLastError(), "batch_norm");
}

template <typename T>
void backward(const BatchNorm& a, const BatchNormGradients& g, cudaStream_t stream) {
  const auto launch = Launch::of<T>(a);
  const int lanes = launch.tiling.lanes;
  gradient_sums_kernel<T><<<launch.sums, kThreads, 0, stream>>>(a, lanes, g.output);
  parameter_gradients_kernel<<<launch.merge, kWarp * kMergers, 0, stream>>>(a, launch.sums.x,
                                                                            g.parameters);
  input_gradient_kernel<T><<<launch.elements, kThreads, 0, stream>>>(a, lanes, g);
  check(cudaGetLastError(), "batch_norm_gradients");
}

}  // namespace

bool has_batch_norm(Type type, int64_t channels) {
  constexpr int64_t kMostGroups = 65535;
  return type != Type::fp64 && channels > 0 && channels % vector_of(type) == 0 &&
         channels / vector_of(type) <= kMostGroups;
}

int64_t batch_norm_slabs(Type type, int64_t rows, int64_t channels) {
  return blocks_of(tiling_of(channels / vector_of(type), rows), kMostSlabs);
}

void batch_norm(const BatchNorm& arguments, double epsilon, const RunningStatistics& running,
                void* output, Stream stream) {
  const auto run = arguments.type == Type::bf16   ? forward<__nv_bfloat16>
                   : arguments.type == Type::fp16 ? forward<__half>
                                                  : forward<float>;
  run(arguments, epsilon, running, output, stream);
}

void batch_norm_gradients(const BatchNorm& arguments, const BatchNormGradients& gradients,
                          Stream stream) {
  const auto run = arguments.type == Type::bf16   ? backward<__nv_bfloat16>
                   : arguments.type == Type::fp16 ? backward<__half>
                                                  : backward<float>;
  run(arguments, gradients, stream);
}

}  // namespace tasks::operators::kernels
