#pragma once
/// What the kernels share: numbers, vectors of them, errors.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace tasks::operators::kernels {

template <typename T>
struct WideOf {
  using type = float;
};
template <>
struct WideOf<double> {
  using type = double;
};
/// What sums are made in.
template <typename T>
using Wide = typename WideOf<T>::type;

__device__ inline double widen(double value) { return value; }
__device__ inline float widen(float value) { return value; }
__device__ inline float widen(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ inline float widen(__half value) { return __half2float(value); }

template <typename T>
__device__ T narrow(Wide<T> value) {
  return static_cast<T>(value);
}
template <>
__device__ inline __nv_bfloat16 narrow<__nv_bfloat16>(float value) {
  return __float2bfloat16(value);
}

template <>
__device__ inline __half narrow<__half>(float value) {
  return __float2half(value);
}

/// exp(value - shift), as exact as logits of type T are.
template <typename T>
struct Exponential {
  Wide<T> shift;
  __device__ explicit Exponential(Wide<T> from) : shift(from) {}
  __device__ Wide<T> operator()(Wide<T> value) const { return exp(value - shift); }
};

/// For 16 bits: one multiplication and the GPU's own 2^x, which is exact to 22 bits.
struct QuickExponential {
  static constexpr float kLog2E = 1.44269504f;
  float shift;
  __device__ explicit QuickExponential(float from) : shift(from * kLog2E) {}
  __device__ float operator()(float value) const {
    float result;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(fmaf(value, kLog2E, -shift)));
    return result;
  }
};
template <>
struct Exponential<__nv_bfloat16> : QuickExponential {
  using QuickExponential::QuickExponential;
};
template <>
struct Exponential<__half> : QuickExponential {
  using QuickExponential::QuickExponential;
};

/// N elements that one thread moves at once; at most 16 bytes.
template <typename T, int N>
struct alignas(sizeof(T) * N) Vector {
  T values[N];
};

constexpr int kWarp = 32;

/// Of a warp's values, in every lane.
__device__ inline float warp_sum(float value) {
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(~0u, value, distance);
  }
  return value;
}

/// Stops the program: a target that is not a word.
__device__ inline void refuse(int64_t target, int64_t row, int64_t vocabulary) {
  printf("cross-entropy: target %lld in row %lld is none of %lld columns\n",
         static_cast<long long>(target), static_cast<long long>(row),
         static_cast<long long>(vocabulary));
  __trap();
}

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  throw std::runtime_error(std::string("kernel ") + what + ": " + cudaGetErrorString(status));
}

}  // namespace tasks::operators::kernels
