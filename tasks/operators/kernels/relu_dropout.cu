// A thread does 8 elements: two calls of Philox.
#include "device.cuh"
#include "kernels.hpp"
#include "philox.cuh"

namespace tasks::operators::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kEight = 8;

template <typename T>
struct Eight {
  static constexpr int kOfVector = 16 / sizeof(T);
  Vector<T, kOfVector> vectors[kEight / kOfVector];

  __device__ explicit Eight(const T* from) {
#pragma unroll
    for (int i = 0; i < kEight / kOfVector; ++i) {
      vectors[i] = reinterpret_cast<const Vector<T, kOfVector>*>(from)[i];
    }
  }
  __device__ T& operator[](int i) { return vectors[i / kOfVector].values[i % kOfVector]; }
  __device__ void store(T* to) const {
#pragma unroll
    for (int i = 0; i < kEight / kOfVector; ++i) {
      reinterpret_cast<Vector<T, kOfVector>*>(to)[i] = vectors[i];
    }
  }
};

__device__ int64_t first_of_thread() {
  return (int64_t(blockIdx.x) * kThreads + threadIdx.x) * kEight;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) relu_kernel(ReluDropout a, const T* input, T* result) {
  const int64_t first = first_of_thread();
  if (first >= a.size) return;
  Eight<T> eight(input + first);
#pragma unroll
  for (int four = 0; four < kEight; four += 4) {
    float factors[4];
    dropout_factors(a.random, a.dropout, first + four, factors);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float value = widen(eight[four + j]);
      // Not a number stays so.
      eight[four + j] = narrow<T>(value <= 0 || factors[j] == 0 ? 0 : value * factors[j]);
    }
  }
  eight.store(result + first);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    relu_gradient_kernel(ReluDropout a, const T* result, const T* gradient, T* input) {
  const int64_t first = first_of_thread();
  if (first >= a.size) return;
  Eight<T> results(result + first), gradients(gradient + first);
  const float factor = 1 / (1 - static_cast<float>(a.dropout));
#pragma unroll
  for (int i = 0; i < kEight; ++i) {
    const bool passes = !(widen(results[i]) == 0);
    gradients[i] = narrow<T>(passes ? widen(gradients[i]) * factor : 0);
  }
  gradients.store(input + first);
}

unsigned blocks(int64_t size) {
  constexpr int64_t kOfBlock = kThreads * kEight;
  return static_cast<unsigned>((size + kOfBlock - 1) / kOfBlock);
}

template <typename T>
void forward(const ReluDropout& a, const void* input, void* result, cudaStream_t stream) {
  relu_kernel<<<blocks(a.size), kThreads, 0, stream>>>(a, static_cast<const T*>(input),
                                                       static_cast<T*>(result));
}

template <typename T>
void backward(const ReluDropout& a, const void* result, const void* gradient, void* input,
              cudaStream_t stream) {
  relu_gradient_kernel<<<blocks(a.size), kThreads, 0, stream>>>(
      a, static_cast<const T*>(result), static_cast<const T*>(gradient), static_cast<T*>(input));
}

}  // namespace

void relu_dropout(const ReluDropout& arguments, const void* input, void* result, Stream stream) {
  if (arguments.size == 0) return;
  arguments.type == Type::bf16 ? forward<__nv_bfloat16>(arguments, input, result, stream)
                               : forward<float>(arguments, input, result, stream);
  check(cudaGetLastError(), "relu_dropout");
}

void relu_dropout_gradient(const ReluDropout& arguments, const void* result, const void* gradient,
                           void* input_gradient, Stream stream) {
  if (arguments.size == 0) return;
  arguments.type == Type::bf16
      ? backward<__nv_bfloat16>(arguments, result, gradient, input_gradient, stream)
      : backward<float>(arguments, result, gradient, input_gradient, stream);
  check(cudaGetLastError(), "relu_dropout_gradient");
}

}  // namespace tasks::operators::kernels
