// By tensor cores: a warp does 16 queries with all keys, in registers, as in FlashAttention-2 (Dao
// 2023, https://arxiv.org/abs/2307.08691); the gradients of 16 keys are then made of what both
// warps put into shared memory.
#include <cmath>

#include "attention.cuh"
#include "device.cuh"
#include "philox.cuh"

namespace tasks::operators::kernels {
namespace {

using Number = __nv_bfloat16;

constexpr int kMost = kMostAttentionSequence;
constexpr int kRows = 16;           // of a warp
constexpr int kTiles = kMost / 8;   // of scores, 16 x 8 each
constexpr int kSteps = kMost / 16;  // of a product over all keys or queries
constexpr int kThreads = kMost / kRows * kWarp;

// Fragments of mma.m16n8k16, PTX ISA 8.8, section 9.7.14.5.8: a thread has pairs of neighbours.
using Left = uint32_t[4];
using Right = uint32_t[2];
using Tile = float[4];

__device__ int row_of_thread() { return static_cast<int>(threadIdx.x) % kWarp / 4; }
__device__ int pair_of_thread() { return static_cast<int>(threadIdx.x) % 4 * 2; }
__device__ int first_row_of_warp() { return static_cast<int>(threadIdx.x) / kWarp * kRows; }

__device__ void multiply(const Left& a, const Right& b, Tile& sum) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ uint32_t packed(float first, float second) {
  return uint32_t(__bfloat16_as_ushort(narrow<Number>(second))) << 16 |
         __bfloat16_as_ushort(narrow<Number>(first));
}

/// 32 rows in shared memory, read as fragments by ldmatrix (section 9.7.14.5.15). What is beyond
/// `Columns` keeps eight rows out of each other's banks.
template <int Columns>
struct Matrix {
  alignas(16) Number of[kMost][Columns + 8];

  /// Rows from `count` on become zero. By all threads of a block; a barrier must follow.
  __device__ void load(const Number* from, int64_t stride, int count) {
    for (int i = threadIdx.x; i < kMost * Columns / 8; i += kThreads) {
      const int row = i / (Columns / 8), column = i % (Columns / 8) * 8;
      uint4 eight{};
      if (row < count) eight = *reinterpret_cast<const uint4*>(from + row * stride + column);
      *reinterpret_cast<uint4*>(of[row] + column) = eight;
    }
  }

  /// 16 rows, 16 columns.
  __device__ void left(int row, int column, Left& result) const {
    const int lane = threadIdx.x % kWarp;
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(result[0]), "=r"(result[1]), "=r"(result[2]), "=r"(result[3])
                 : "r"(address(row + lane % 16, column + lane / 16 * 8))
                 : "memory");
  }
  /// 16 rows, 8 columns.
  __device__ void right(int row, int column, Right& result) const {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(result[0]), "=r"(result[1])
                 : "r"(address(row + threadIdx.x % 16, column))
                 : "memory");
  }
  /// The same of the transposed matrix: 8 rows of this one, 16 columns.
  __device__ void right_transposed(int row, int column, Right& result) const {
    const int lane = threadIdx.x % 16;
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(result[0]), "=r"(result[1])
                 : "r"(address(row + lane % 8, column + lane / 8 * 8))
                 : "memory");
  }

 private:
  __device__ uint32_t address(int row, int column) const {
    return static_cast<uint32_t>(__cvta_generic_to_shared(of[row] + column));
  }
};

/// A warp's rows of something for each query and key. Of a thread's four numbers in a tile, two are
/// neighbours in one row, two in the eighth below.
struct Rows {
  Tile tiles[kTiles];

  __device__ static int key(int tile, int i) { return 8 * tile + pair_of_thread() + i % 2; }
  __device__ static int query(int i) {
    return first_row_of_warp() + row_of_thread() + (i < 2 ? 0 : 8);
  }

  /// [16, Size] times the transposed of [32, Size].
  template <int Size>
  __device__ static Rows product(const Matrix<Size>& a, const Matrix<Size>& b) {
    Rows result{};
#pragma unroll
    for (int column = 0; column < Size; column += 16) {
      Left left;
      a.left(first_row_of_warp(), column, left);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        Right right;
        b.right_transposed(8 * tile, column, right);
        multiply(left, right, result.tiles[tile]);
      }
    }
    return result;
  }

  /// f(number, tile, i) of all.
  template <typename F>
  __device__ void each(const F& f) {
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) f(tiles[tile][i], tile, i);
    }
  }

  /// As the left side of a product over keys.
  __device__ void left(int step, Left& result) const {
    const auto &a = tiles[2 * step], &b = tiles[2 * step + 1];
    result[0] = packed(a[0], a[1]), result[1] = packed(a[2], a[3]);
    result[2] = packed(b[0], b[1]), result[3] = packed(b[2], b[3]);
  }
};

/// For both rows of a thread, what the four threads of the row come to.
template <typename F>
__device__ void combine(float (&of_rows)[2], const F& f) {
  for (float& value : of_rows) {
    value = f(value, __shfl_xor_sync(~0u, value, 1));
    value = f(value, __shfl_xor_sync(~0u, value, 2));
  }
}

__device__ void sum_up(float (&of_rows)[2]) {
  combine(of_rows, [](float a, float b) { return a + b; });
}

template <int Size>
__device__ Rows probabilities_of(const Matrix<Size>& queries, const Matrix<Size>& keys) {
  auto rows = Rows::product(queries, keys);
  const float scale = rsqrtf(static_cast<float>(Size));
  float greatest[2] = {-INFINITY, -INFINITY};
  rows.each([&](float& score, int tile, int i) {
    score = Rows::key(tile, i) <= Rows::query(i) ? score * scale : -INFINITY;
    greatest[i / 2] = fmaxf(greatest[i / 2], score);
  });
  combine(greatest, [](float a, float b) { return fmaxf(a, b); });
  const Exponential<Number> exponentials[2] = {Exponential<Number>(greatest[0]),
                                               Exponential<Number>(greatest[1])};
  float sums[2] = {};
  rows.each([&](float& score, int /*tile*/, int i) {
    score = exponentials[i / 2](score);
    sums[i / 2] += score;
  });
  sum_up(sums);
  rows.each([&](float& weight, int /*tile*/, int i) { weight /= sums[i / 2]; });
  return rows;
}

/// What dropout multiplies them by: a call of Philox does a thread's four in one row of two tiles.
__device__ Rows factors_of(const CausalAttention& a) {
  Rows rows;
#pragma unroll
  for (int tile = 0; tile < kTiles; tile += 2) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const int64_t row = int64_t(blockIdx.x) * kMost + Rows::query(i);
      float factors[4];
      dropout_factors(a.random, a.dropout, row * kMost + 8 * tile + 2 * pair_of_thread(), factors);
      rows.tiles[tile][i] = factors[0], rows.tiles[tile][i + 1] = factors[1];
      rows.tiles[tile + 1][i] = factors[2], rows.tiles[tile + 1][i + 1] = factors[3];
    }
  }
  return rows;
}

/// left(step) times `right`, into the warp's rows of `to`, as far as there are any.
template <int Size, typename F>
__device__ void store_product(const F& left, const Matrix<Size>& right, Number* to, int64_t stride,
                              int count) {
  Left lefts[kSteps];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) left(step, lefts[step]);
#pragma unroll
  for (int column = 0; column < Size; column += 8) {
    Tile sum{};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      Right part;
      right.right(16 * step, column, part);
      multiply(lefts[step], part, sum);
    }
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const int row = Rows::query(i);
      if (row >= count) continue;
      *reinterpret_cast<uint32_t*>(to + row * stride + column + pair_of_thread()) =
          packed(sum[i], sum[i + 1]);
    }
  }
}

template <int Size>
__global__ void __launch_bounds__(kThreads) attention_kernel(CausalAttention a, Number* result) {
  __shared__ Head<Number, Matrix, Size> head;
  const Place<Size> at(a);
  head.load(a, at);
  const Rows factors = factors_of(a);
  __syncthreads();
  auto dropped = probabilities_of(head.queries, head.keys);
  dropped.each([&](float& number, int tile, int i) { number *= factors.tiles[tile][i]; });
  store_product([&](int step, Left& to) { dropped.left(step, to); }, head.values,
                result + at.result, at.stride, static_cast<int>(a.sequence));
}

/// For each key and query, as both warps leave it.
struct Transposed : Matrix<kMost> {
  __device__ void take(Rows& rows) {
    rows.each([&](float number, int tile, int i) {
      of[Rows::key(tile, i)][Rows::query(i)] = narrow<Number>(number);
    });
  }
  /// 16 keys as the left side of a product over queries.
  __device__ void left(int step, Left& result) const {
    Matrix::left(first_row_of_warp(), 16 * step, result);
  }
};

template <int Size>
__global__ void __launch_bounds__(kThreads)
    attention_gradient_kernel(CausalAttention a, const Number* gradient, Number* result) {
  __shared__ Head<Number, Matrix, Size> head;
  __shared__ Matrix<Size> gradients;
  __shared__ Transposed dropped, of_scores;
  const Place<Size> at(a);
  const int count = static_cast<int>(a.sequence);
  head.load(a, at);
  gradients.load(gradient + at.result, at.stride, count);
  Rows factors = factors_of(a);
  __syncthreads();
  auto probabilities = probabilities_of(head.queries, head.keys);
  auto of_probabilities = Rows::product(gradients, head.values);
  float totals[2] = {};  // of the softmax's gradient
  of_probabilities.each([&](float& number, int tile, int i) {
    number *= factors.tiles[tile][i];
    totals[i / 2] += number * probabilities.tiles[tile][i];
    factors.tiles[tile][i] *= probabilities.tiles[tile][i];
  });
  dropped.take(factors);
  sum_up(totals);
  const float scale = rsqrtf(static_cast<float>(Size));
  probabilities.each([&](float& number, int tile, int i) {
    number *= (of_probabilities.tiles[tile][i] - totals[i / 2]) * scale;
  });
  of_scores.take(probabilities);

  Number* const to = result + at.projected;
  const int64_t stride = 3 * at.stride;
  store_product([&](int step, Left& left) { probabilities.left(step, left); }, head.keys, to,
                stride, count);
  __syncthreads();
  store_product([&](int step, Left& left) { of_scores.left(step, left); }, head.queries,
                to + at.stride, stride, count);
  store_product([&](int step, Left& left) { dropped.left(step, left); }, gradients,
                to + 2 * at.stride, stride, count);
}

}  // namespace

void bf16_attention(const CausalAttention& arguments, void* result, Stream stream) {
  with_head_size(arguments, [&](auto size) {
    attention_kernel<decltype(size)::value><<<attention_blocks(arguments), kThreads, 0, stream>>>(
        arguments, static_cast<Number*>(result));
  });
}

void bf16_attention_gradient(const CausalAttention& arguments, const void* gradient, void* result,
                             Stream stream) {
  with_head_size(arguments, [&](auto size) {
    attention_gradient_kernel<decltype(size)::value>
        <<<attention_blocks(arguments), kThreads, 0, stream>>>(
            arguments, static_cast<const Number*>(gradient), static_cast<Number*>(result));
  });
}

}  // namespace tasks::operators::kernels
