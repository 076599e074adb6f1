#pragma once
/// What kernels over pictures share. Pictures lie as [pictures, height, width, channels], and a
/// thread has a few channels of one pixel.
#include "device.cuh"
#include "kernels.hpp"

namespace tasks::operators::kernels {

constexpr int kThreads = 256;

template <typename T>
constexpr int kVector = 16 / sizeof(T);
template <typename T>
using Channels = Vector<T, kVector<T>>;

/// Where the numberth vector of channels is.
struct Place {
  int64_t picture, row, column, channel;
};
__device__ inline Place place_of(int64_t number, int64_t height, int64_t width, int64_t vectors) {
  const int64_t pixel = number / vectors, line = pixel / width;
  return {line / height, line % height, pixel % width, number % vectors};
}

__device__ inline int64_t number_of_thread() {
  return int64_t(blockIdx.x) * kThreads + threadIdx.x;
}

/// For as many elements.
template <typename T>
unsigned blocks_of(int64_t elements) {
  return static_cast<unsigned>((elements / kVector<T> + kThreads - 1) / kThreads);
}

/// kVector of a type with 4 or 2 bytes.
inline int64_t vector_of(Type type) {
  return type == Type::fp32 ? kVector<float> : kVector<__half>;
}

inline bool has_blocks(Type type, int64_t pixels, int64_t channels) {
  const int64_t vector = vector_of(type);
  return type != Type::fp64 && channels % vector == 0 && pixels > 0 &&
         pixels * channels / vector / kThreads < (1 << 30);
}

}  // namespace tasks::operators::kernels
