// A thread a few channels of one pixel.
#include "pictures.cuh"

namespace tasks::operators::kernels {
namespace {

__device__ int64_t pixels_at(int64_t place, int64_t size) { return 2 * place + 1 < size ? 2 : 1; }

template <typename T>
__global__ void __launch_bounds__(kThreads)
    pool_kernel(Pictures a, const Channels<T>* input, Channels<T>* output) {
  const int64_t vectors = a.channels / kVector<T>;
  const int64_t height = (a.height + 1) / 2, width = (a.width + 1) / 2;
  const int64_t thread = number_of_thread();
  if (thread >= a.pictures * height * width * vectors) return;
  const auto place = place_of(thread, height, width, vectors);
  const int64_t rows = pixels_at(place.row, a.height), columns = pixels_at(place.column, a.width);
  float sums[kVector<T>] = {};
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t line = place.picture * a.height + 2 * place.row + row;
      const auto pixel =
          input[(line * a.width + 2 * place.column + column) * vectors + place.channel];
      for (int j = 0; j < kVector<T>; ++j) sums[j] += widen(pixel.values[j]);
    }
  }
  Channels<T> means;
  const float count = static_cast<float>(rows * columns);
  for (int j = 0; j < kVector<T>; ++j) means.values[j] = narrow<T>(sums[j] / count);
  output[thread] = means;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    pool_gradient_kernel(Pictures a, const Channels<T>* output, Channels<T>* input) {
  const int64_t vectors = a.channels / kVector<T>;
  const int64_t height = (a.height + 1) / 2, width = (a.width + 1) / 2;
  const int64_t thread = number_of_thread();
  if (thread >= a.pictures * a.height * a.width * vectors) return;
  const auto place = place_of(thread, a.height, a.width, vectors);
  const int64_t row = place.row / 2, column = place.column / 2;
  const auto mean =
      output[((place.picture * height + row) * width + column) * vectors + place.channel];
  const float count = static_cast<float>(pixels_at(row, a.height) * pixels_at(column, a.width));
  Channels<T> shares;
  for (int j = 0; j < kVector<T>; ++j) shares.values[j] = narrow<T>(widen(mean.values[j]) / count);
  input[thread] = shares;
}

template <typename T>
void pool(const Pictures& a, const void* input, void* output, cudaStream_t stream) {
  const int64_t pixels = a.pictures * ((a.height + 1) / 2) * ((a.width + 1) / 2);
  pool_kernel<T><<<blocks_of<T>(pixels * a.channels), kThreads, 0, stream>>>(
      a, static_cast<const Channels<T>*>(input), static_cast<Channels<T>*>(output));
  check(cudaGetLastError(), "average_pool");
}

template <typename T>
void pool_gradient(const Pictures& a, const void* output, void* input, cudaStream_t stream) {
  const int64_t pixels = a.pictures * a.height * a.width;
  pool_gradient_kernel<T><<<blocks_of<T>(pixels * a.channels), kThreads, 0, stream>>>(
      a, static_cast<const Channels<T>*>(output), static_cast<Channels<T>*>(input));
  check(cudaGetLastError(), "average_pool_gradient");
}

}  // namespace

bool has_pools(const Pictures& a) {
  return has_blocks(a.type, a.pictures * a.height * a.width, a.channels);
}

void average_pool(const Pictures& arguments, const void* input, void* output, Stream stream) {
  const auto run = arguments.type == Type::bf16   ? pool<__nv_bfloat16>
                   : arguments.type == Type::fp16 ? pool<__half>
                                                  : pool<float>;
  run(arguments, input, output, stream);
}

void average_pool_gradient(const Pictures& arguments, const void* output, void* input,
                           Stream stream) {
  const auto run = arguments.type == Type::bf16   ? pool_gradient<__nv_bfloat16>
                   : arguments.type == Type::fp16 ? pool_gradient<__half>
                                                  : pool_gradient<float>;
  run(arguments, output, input, stream);
}

}  // namespace tasks::operators::kernels
