// One pass over parameters, gradients and both averages: 28 bytes an element, 30 with a copy.
#include <algorithm>

#include "device.cuh"
#include "kernels.hpp"

namespace tasks::operators::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWidth = 4;  // floats that a thread moves at once
constexpr int64_t kPerBlock = 4 * kThreads * kWidth;
constexpr int kMostTensors = 48;  // what fits into a kernel's arguments, 4 KB

struct Batch {
  AdamWParameter tensors[kMostTensors];
  unsigned first_block[kMostTensors + 1];
  int count = 0;
};

/// What is the same for all elements of a step.
struct Factors {
  float one_minus_beta1, beta2, one_minus_beta2, epsilon;
  double beta1_exact, beta2_exact, weight_decay;
};

/// What the learning rate and the number of the step make of it.
struct OfStep {
  float decay, size, root_of_correction2;
};

struct Element {
  float parameter, exp_avg, exp_avg_sq;
};

__device__ Element stepped(Element old, float gradient, const Factors& f, const OfStep& step) {
  Element next;
  const float decayed = old.parameter * step.decay;
  next.exp_avg = old.exp_avg + f.one_minus_beta1 * (gradient - old.exp_avg);
  next.exp_avg_sq = f.beta2 * old.exp_avg_sq + f.one_minus_beta2 * gradient * gradient;
  const float denominator = sqrtf(next.exp_avg_sq) / step.root_of_correction2 + f.epsilon;
  next.parameter = decayed - step.size * next.exp_avg / denominator;
  return next;
}

template <typename Copy, int N>
__device__ void update(const AdamWParameter& t, int64_t i, const Factors& f, const OfStep& step) {
  using Floats = Vector<float, N>;
  auto parameter = *reinterpret_cast<const Floats*>(t.parameter + i);
  const auto gradient = *reinterpret_cast<const Floats*>(t.gradient + i);
  auto exp_avg = *reinterpret_cast<const Floats*>(t.exp_avg + i);
  auto exp_avg_sq = *reinterpret_cast<const Floats*>(t.exp_avg_sq + i);
  Vector<Copy, N> copy;
#pragma unroll
  for (int j = 0; j < N; ++j) {
    const Element next = stepped({parameter.values[j], exp_avg.values[j], exp_avg_sq.values[j]},
                                 gradient.values[j], f, step);
    parameter.values[j] = next.parameter;
    exp_avg.values[j] = next.exp_avg;
    exp_avg_sq.values[j] = next.exp_avg_sq;
    copy.values[j] = narrow<Copy>(next.parameter);
  }
  *reinterpret_cast<Floats*>(t.parameter + i) = parameter;
  *reinterpret_cast<Floats*>(t.exp_avg + i) = exp_avg;
  *reinterpret_cast<Floats*>(t.exp_avg_sq + i) = exp_avg_sq;
  if (t.copy != nullptr) {
    *reinterpret_cast<Vector<Copy, N>*>(static_cast<Copy*>(t.copy) + i) = copy;
  }
}

__device__ bool is_aligned(const AdamWParameter& t) {
  const auto bits =
      reinterpret_cast<std::uintptr_t>(t.parameter) | reinterpret_cast<std::uintptr_t>(t.gradient) |
      reinterpret_cast<std::uintptr_t>(t.exp_avg) | reinterpret_cast<std::uintptr_t>(t.exp_avg_sq) |
      2 * reinterpret_cast<std::uintptr_t>(t.copy);
  return bits % (kWidth * sizeof(float)) == 0;
}

template <typename Copy>
__global__ void __launch_bounds__(kThreads)
    adamw_kernel(const __grid_constant__ Batch batch, Factors f, const float* learning_rate,
                 const float* number_of_step) {
  __shared__ OfStep shared;
  if (threadIdx.x == 0) {
    const double number = *number_of_step, rate = *learning_rate;
    shared.decay = static_cast<float>(1 - rate * f.weight_decay);
    shared.size = static_cast<float>(rate / (1 - pow(f.beta1_exact, number)));
    shared.root_of_correction2 = static_cast<float>(sqrt(1 - pow(f.beta2_exact, number)));
  }
  __syncthreads();
  const OfStep step = shared;
  int which = 0;
  while (blockIdx.x >= batch.first_block[which + 1]) ++which;
  const AdamWParameter& t = batch.tensors[which];
  const int64_t begin = int64_t(blockIdx.x - batch.first_block[which]) * kPerBlock;
  const int64_t end = min(begin + kPerBlock, t.size);
  const int64_t whole = is_aligned(t) ? begin + (end - begin) / kWidth * kWidth : begin;
#pragma unroll 2
  for (int64_t i = begin + threadIdx.x * kWidth; i < whole; i += kThreads * kWidth) {
    update<Copy, kWidth>(t, i, f, step);
  }
  for (int64_t i = whole + threadIdx.x; i < end; i += kThreads) {
    update<Copy, 1>(t, i, f, step);
  }
}

void launch(const Batch& batch, const Factors& factors, const float* learning_rate,
            const float* step, Type copies, cudaStream_t stream) {
  const unsigned blocks = batch.first_block[batch.count];
  if (blocks == 0) return;
  const auto kernel = copies == Type::fp16 ? adamw_kernel<__half> : adamw_kernel<__nv_bfloat16>;
  kernel<<<blocks, kThreads, 0, stream>>>(batch, factors, learning_rate, step);
  check(cudaGetLastError(), "adamw");
}

}  // namespace

void adamw(const std::vector<AdamWParameter>& parameters, const AdamWSettings& s, const float* step,
           Type copies, Stream stream) {
  const Factors factors{static_cast<float>(1 - s.beta1),
                        static_cast<float>(s.beta2),
                        static_cast<float>(1 - s.beta2),
                        static_cast<float>(s.epsilon),
                        s.beta1,
                        s.beta2,
                        s.weight_decay};
  Batch batch{};
  for (const auto& parameter : parameters) {
    if (parameter.size == 0) continue;
    const auto blocks = static_cast<unsigned>((parameter.size + kPerBlock - 1) / kPerBlock);
    batch.tensors[batch.count] = parameter;
    batch.first_block[batch.count + 1] = batch.first_block[batch.count] + blocks;
    if (++batch.count == kMostTensors) {
      launch(batch, factors, s.learning_rate, step, copies, stream);
      batch = {};
    }
  }
  launch(batch, factors, s.learning_rate, step, copies, stream);
}

}  // namespace tasks::operators::kernels
