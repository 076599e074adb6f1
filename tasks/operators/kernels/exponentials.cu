// Exponentials of logits, tile by tile: 64 rows by 128 words, products of matrices in shared
// memory. The weights' tiles stay, and those of the hidden vectors change.
#include <algorithm>

#include "device.cuh"
#include "exponentials.cuh"
#include "tensor_cores.cuh"

namespace tasks::operators::kernels {
namespace {

constexpr int kRows = kProductRows, kWords = kProductColumns;
constexpr int kVectors = kWords / 8;  // 16 bytes each, of a row of a tile's exponentials
constexpr int64_t kSlabRows = 1024;   // that one block goes through
constexpr int kGroups = 2;            // of 128 threads, in a block, each with tiles of its own
constexpr int kThreads = kGroups * kGroupThreads;

/// Hidden vectors of a tile, as products want them in shared memory.
template <int kLines>
constexpr int kHiddenBytes = kLines* kRows* kLineBytes;

/// What a block has in its shared memory, from an address that is a multiple of 1024 bytes.
template <int kLines>
struct Shared {
  uint8_t weights[kLines * kWords * kLineBytes];
  uint8_t hidden[kGroups][kHiddenBytes<kLines>];
  // Exponentials on their way out, which leave in other hands than they came; 16 bytes more a row,
  // so that rows lie in different banks.
  __nv_bfloat16 leaving[kGroups][kRows][kWords + 8];
  float biases[kWords];
  uint64_t barriers[kGroups];
};
constexpr int kAlignment = 1024;

/// Of eight numbers each.
__device__ float dot(const uint4& left, const uint4& right) {
  const auto* a = reinterpret_cast<const __nv_bfloat16*>(&left);
  const auto* b = reinterpret_cast<const __nv_bfloat16*>(&right);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) sum = fmaf(widen(a[i]), widen(b[i]), sum);
  return sum;
}

/// A warp a row: its target's logit or, where it is ignored, what makes all exponentials zero; and
/// the row's place among the tiles.
template <int kLines>
__global__ void prepare_kernel(ExponentialLosses a) {
  const int lane = threadIdx.x % kWarp;
  const int64_t row = int64_t(blockIdx.x) * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  const bool there = lane * 8 < a.width && row < a.rows;
  const auto* hidden = static_cast<const uint4*>(a.hidden) + row * a.width / 8 + lane;
  const uint4 vector = there ? *hidden : uint4{};
  if (lane < kLines * 8) {
    auto* tile = static_cast<uint8_t*>(a.tiles) + row / kRows * kHiddenBytes<kLines>;
    *reinterpret_cast<uint4*>(tile + swizzled(row % kRows, lane, kRows)) = vector;
  }
  if (row >= a.rows) return;
  const int64_t target = a.target[row];
  const bool counts = target != a.ignore_index;
  if (counts && (target < 0 || target >= a.vocabulary)) refuse(target, row, a.vocabulary);
  float sum = 0;
  if (there && counts) {
    const auto* weight = static_cast<const uint4*>(a.weight) + target * a.width / 8 + lane;
    sum = dot(vector, *weight);
  }
  sum = warp_sum(sum);
  const auto* bias = static_cast<const __nv_bfloat16*>(a.bias);
  if (lane == 0) a.shifts[row] = counts ? sum + widen(bias[target]) : INFINITY;
}

template <int kLines>
__device__ void begin_weights(const ExponentialLosses& a, int64_t first_word, uint8_t* to) {
  const auto* weight = static_cast<const __nv_bfloat16*>(a.weight);
  for (int i = threadIdx.x; i < kWords * kLines * 8; i += kThreads) {
    const int row = i / (kLines * 8), column = i % (kLines * 8);
    const bool there = first_word + row < a.vocabulary && column * 8 < a.width;
    begin_copy(shared_address(to) + swizzled(row, column, kWords),
               weight + (there ? (first_word + row) * a.width + column * 8 : 0), there);
  }
}

/// Over the four lanes that share a row.
__device__ float sum_of_row(float value) {
  value += __shfl_xor_sync(~0u, value, 1);
  return value + __shfl_xor_sync(~0u, value, 2);
}

/// A group's tiles: block x has 128 words, block y 1024 rows, and groups take turns on them.
template <int kLines, bool kKept>
class Tiles {
 public:
  __device__ Tiles(const ExponentialLosses& a, Shared<kLines>& shared)
      : a_(a),
        group_(threadIdx.x / kGroupThreads),
        thread_(threadIdx.x % kGroupThreads),
        hidden_(shared.hidden[group_]),
        leaving_(shared.leaving[group_]),
        weights_(shared.weights),
        biases_(shared.biases),
        first_row_(blockIdx.y * kSlabRows),
        rows_(static_cast<int>(min(kSlabRows, a.rows - first_row_))),
        arrivals_(shared.barriers[group_]) {
    if (thread_ == 0) Arrivals::prepare(shared.barriers[group_]);
    begin_weights<kLines>(a, blockIdx.x * int64_t(kWords), shared.weights);
    const int64_t word = int64_t(blockIdx.x) * kWords + thread_;
    shared.biases[thread_] =
        word < a.vocabulary ? widen(static_cast<const __nv_bfloat16*>(a.bias)[word]) : -INFINITY;
    finish_copies();
    __syncthreads();
  }

  __device__ void make_all() {
    begin(0);
    // All groups as often, for the compiler's sake: the last ones may have rows that do not exist.
    for (int first = 0; first < rows_; first += kGroups * kRows) {
      float logits[kShare];
      arrivals_.wait();
      make(logits);
      wait_for_group();  // nobody needs the hidden vectors any more, nor what left last
      begin(first + kGroups * kRows);
      use(logits, first + group_ * kRows);
    }
  }

 private:
  __device__ void wait_for_group() const {
    asm volatile("bar.sync %0, %1;" ::"r"(group_ + 1), "n"(kGroupThreads) : "memory");
  }

  /// To copy the group's hidden vectors of the next rows, which begin here.
  __device__ void begin(int first) {
    if (thread_ != 0 || first >= rows_) return;
    const int64_t tile = (first_row_ + first) / kRows + group_;
    arrivals_.begin(hidden_, static_cast<const uint8_t*>(a_.tiles) + tile * kHiddenBytes<kLines>,
                    kHiddenBytes<kLines>);
  }

  /// Logits, a thread's share of them; a word that does not exist is impossible.
  __device__ void make(float (&logits)[kShare]) {
    const float* biases = biases_ + thread_ % 4 * 2;
#pragma unroll
    for (int i = 0; i < kShare; i += 4) {
      const float2 two = *reinterpret_cast<const float2*>(&biases[i * 2]);
      logits[i] = logits[i + 2] = two.x;
      logits[i + 1] = logits[i + 3] = two.y;
    }
    before_products();
#pragma unroll
    for (int depth = 0; depth < kLines * kLineNumbers; depth += kProductDepth) {
      const int line = depth / kLineNumbers, bytes = depth % kLineNumbers * 2;
      begin_product(logits, shared_address(hidden_) + line * kRows * kLineBytes + bytes,
                    shared_address(weights_) + line * kWords * kLineBytes + bytes);
    }
    finish_products(logits);
  }

  __device__ void use(const float (&logits)[kShare], int tile) {
    const int lane = thread_ % kWarp;
    const int row = thread_ / kWarp * 16 + lane / 4;  // and 8 rows on
    const float* shifts = a_.shifts + first_row_ + tile + row;
    const QuickExponential upper(tile + row < rows_ ? shifts[0] : INFINITY);
    const QuickExponential lower(tile + row + 8 < rows_ ? shifts[8] : INFINITY);
    float sums[2] = {};
#pragma unroll
    for (int i = 0; i < kShare; i += 4) {
      const float2 above{upper(logits[i]), upper(logits[i + 1])};
      const float2 below{lower(logits[i + 2]), lower(logits[i + 3])};
      sums[0] += above.x + above.y;
      sums[1] += below.x + below.y;
      if (!kKept) continue;
      auto* to = &leaving_[row][i * 2 + lane % 4 * 2];
      *reinterpret_cast<__nv_bfloat162*>(to) = __float22bfloat162_rn(above);
      *reinterpret_cast<__nv_bfloat162*>(to + 8 * (kWords + 8)) = __float22bfloat162_rn(below);
    }
    float* partials = a_.partials + blockIdx.x * a_.rows + first_row_ + tile + row;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      sums[i] = sum_of_row(sums[i]);
      if (lane % 4 == 0 && tile + row + 8 * i < rows_) partials[8 * i] = sums[i];
    }
    if (kKept) store(tile);
  }

  __device__ void store(int tile) {
    constexpr int kStep = kGroupThreads / kVectors;
    const int row = thread_ / kVectors, column = thread_ % kVectors * 8;
    const int64_t word = int64_t(blockIdx.x) * kWords + column;
    auto* to =
        static_cast<__nv_bfloat16*>(a_.exponentials) + (first_row_ + tile + row) * a_.stride + word;
    wait_for_group();
#pragma unroll
    for (int i = 0; i < kRows; i += kStep, to += kStep * a_.stride) {
      if (word >= a_.stride || tile + row + i >= rows_) continue;
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(&leaving_[row + i][column]);
    }
  }

  const ExponentialLosses& a_;
  int group_, thread_;
  uint8_t (&hidden_)[kHiddenBytes<kLines>];
  __nv_bfloat16 (&leaving_)[kRows][kWords + 8];
  const uint8_t* weights_;
  const float* biases_;
  int64_t first_row_;
  int rows_;
  Arrivals arrivals_;
};

template <int kLines, bool kKept>
__global__ void __launch_bounds__(kThreads, 2) exponentials_kernel(ExponentialLosses a) {
  extern __shared__ uint8_t memory[];
  auto& shared = *reinterpret_cast<Shared<kLines>*>(
      memory + (kAlignment - shared_address(memory) % kAlignment) % kAlignment);
  Tiles<kLines, kKept>(a, shared).make_all();
}

/// As many for each group.
int64_t tiles(int64_t rows) { return (rows + kGroups * kRows - 1) / (kGroups * kRows) * kGroups; }

template <int kLines, bool kKept>
void launch(const ExponentialLosses& a, cudaStream_t stream) {
  const auto kernel = exponentials_kernel<kLines, kKept>;
  constexpr int kBytes = sizeof(Shared<kLines>) + kAlignment;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
        "exponentials' shared memory");
  constexpr unsigned kPrepared = 8;  // rows of a block
  prepare_kernel<kLines>
      <<<static_cast<unsigned>(tiles(a.rows) * kRows / kPrepared), kPrepared * kWarp, 0, stream>>>(
          a);
  const dim3 grid(static_cast<unsigned>(exponential_parts(a.vocabulary)),
                  static_cast<unsigned>((a.rows + kSlabRows - 1) / kSlabRows));
  kernel<<<grid, kThreads, kBytes, stream>>>(a);
}

template <int kLines>
void launch(const ExponentialLosses& a, cudaStream_t stream) {
  a.exponentials ? launch<kLines, true>(a, stream) : launch<kLines, false>(a, stream);
}

}  // namespace

int64_t exponential_tile_bytes(int64_t rows, int64_t width) {
  return tiles(rows) * (width <= kLineNumbers ? kHiddenBytes<1> : kHiddenBytes<2>);
}

int64_t exponential_parts(int64_t vocabulary) { return (vocabulary + kWords - 1) / kWords; }

void make_exponentials(const ExponentialLosses& a, cudaStream_t stream) {
  a.width <= kLineNumbers ? launch<1>(a, stream) : launch<2>(a, stream);
}

}  // namespace tasks::operators::kernels
