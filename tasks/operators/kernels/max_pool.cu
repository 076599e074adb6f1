// A thread a few channels of one pixel. Output row o takes input rows 2 o - 1 to 2 o + 1.
#include "pictures.cuh"

namespace tasks::operators::kernels {
namespace {

constexpr int kSide = 3;

template <typename T>
using Winners = Vector<uint8_t, kVector<T>>;

__host__ __device__ int64_t pooled(int64_t size) { return (size - 1) / 2 + 1; }

template <typename T>
__global__ void __launch_bounds__(kThreads)
    max_kernel(Pictures a, const Channels<T>* input, Channels<T>* output, Winners<T>* winners) {
  const int64_t vectors = a.channels / kVector<T>;
  const int64_t height = pooled(a.height), width = pooled(a.width), thread = number_of_thread();
  if (thread >= a.pictures * height * width * vectors) return;
  const auto place = place_of(thread, height, width, vectors);
  Channels<T> most{};
  Winners<T> winner{};
  bool is_first = true;
#pragma unroll
  for (int i = 0; i < kSide * kSide; ++i) {
    const int64_t row = 2 * place.row - 1 + i / kSide, column = 2 * place.column - 1 + i % kSide;
    if (row < 0 || row >= a.height || column < 0 || column >= a.width) continue;
    const int64_t line = place.picture * a.height + row;
    const auto pixel = input[(line * a.width + column) * vectors + place.channel];
    for (int j = 0; j < kVector<T>; ++j) {
      const float value = widen(pixel.values[j]);
      // As torch: the first of equals, and what is not a number.
      if (!is_first && !(value > widen(most.values[j])) && value == value) continue;
      most.values[j] = pixel.values[j];
      winner.values[j] = static_cast<uint8_t>(i);
    }
    is_first = false;
  }
  output[thread] = most;
  winners[thread] = winner;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    max_gradient_kernel(Pictures a, const Channels<T>* output, const Winners<T>* winners,
                        Channels<T>* input) {
  const int64_t vectors = a.channels / kVector<T>;
  const int64_t height = pooled(a.height), width = pooled(a.width), thread = number_of_thread();
  if (thread >= a.pictures * a.height * a.width * vectors) return;
  const auto place = place_of(thread, a.height, a.width, vectors);
  float sums[kVector<T>] = {};
  for (int64_t row = place.row / 2; row <= (place.row + 1) / 2; ++row) {
    for (int64_t column = place.column / 2; column <= (place.column + 1) / 2; ++column) {
      if (row >= height || column >= width) continue;
      const int64_t at =
          ((place.picture * height + row) * width + column) * vectors + place.channel;
      const auto mine =
          static_cast<uint8_t>((place.row - 2 * row + 1) * kSide + place.column - 2 * column + 1);
      const auto winner = winners[at];
      const auto gradient = output[at];
      for (int j = 0; j < kVector<T>; ++j) {
        if (winner.values[j] == mine) sums[j] += widen(gradient.values[j]);
      }
    }
  }
  Channels<T> result;
  for (int j = 0; j < kVector<T>; ++j) result.values[j] = narrow<T>(sums[j]);
  input[thread] = result;
}

template <typename T>
void pool(const Pictures& a, const void* input, void* output, uint8_t* winners,
          cudaStream_t stream) {
  const int64_t pixels = a.pictures * pooled(a.height) * pooled(a.width);
  max_kernel<T><<<blocks_of<T>(pixels * a.channels), kThreads, 0, stream>>>(
      a, static_cast<const Channels<T>*>(input), static_cast<Channels<T>*>(output),
      reinterpret_cast<Winners<T>*>(winners));
  check(cudaGetLastError(), "max_pool");
}

template <typename T>
void pool_gradient(const Pictures& a, const void* output, const uint8_t* winners, void* input,
                   cudaStream_t stream) {
  const int64_t pixels = a.pictures * a.height * a.width;
  max_gradient_kernel<T><<<blocks_of<T>(pixels * a.channels), kThreads, 0, stream>>>(
      a, static_cast<const Channels<T>*>(output), reinterpret_cast<const Winners<T>*>(winners),
      static_cast<Channels<T>*>(input));
  check(cudaGetLastError(), "max_pool_gradient");
}

}  // namespace

void max_pool(const Pictures& arguments, const void* input, void* output, uint8_t* winners,
              Stream stream) {
  const auto run = arguments.type == Type::bf16   ? pool<__nv_bfloat16>
                   : arguments.type == Type::fp16 ? pool<__half>
                                                  : pool<float>;
  run(arguments, input, output, winners, stream);
}

void max_pool_gradient(const Pictures& arguments, const void* output, const uint8_t* winners,
                       void* input, Stream stream) {
  const auto run = arguments.type == Type::bf16   ? pool_gradient<__nv_bfloat16>
                   : arguments.type == Type::fp16 ? pool_gradient<__half>
                                                  : pool_gradient<float>;
  run(arguments, output, winners, input, stream);
}

}  // namespace tasks::operators::kernels
