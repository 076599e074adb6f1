#pragma once
/// Hopper's matrix products, which four warps make together out of shared memory, and copies into
/// that (PTX ISA 8.8, sections 9.7.15 and 9.7.9.25). Matrices lie there as wgmma wants them: rows
/// of 128 bytes, 64 numbers of bf16, whose eight 16-byte columns change places from row to row
/// ("128-byte swizzle"), so that any eight rows of a column lie in different banks. What is wider
/// lies in several such matrices, one behind the other; each begins at a multiple of 1024 bytes.
#include <cstdint>

#include "device.cuh"

namespace tasks::operators::kernels {

constexpr int kGroupThreads = 4 * kWarp;  // what makes a product together
constexpr int kLineBytes = 128;           // of a row in such a matrix
constexpr int kLineNumbers = 64;

__device__ inline uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

/// Where 16 bytes go, from the matrix's beginning, if `rows` is how many rows it has.
__device__ inline uint32_t swizzled(int row, int column, int rows) {
  return column / 8 * rows * kLineBytes + row * kLineBytes + ((column % 8 ^ row % 8) << 4);
}

/// Begins to copy 16 bytes to shared memory; zeros, and nothing is read, unless `there`.
__device__ inline void begin_copy(uint32_t to, const void* from, bool there) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
               "r"(there ? 16 : 0)
               : "memory");
}

/// Until all that this thread has begun so is there, for products, too. A barrier must follow.
__device__ inline void finish_copies() {
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Copies that one thread begins and all wait for, one after the other. They need no fence, which
/// would also wait until everything stored before is.
class Arrivals {
 public:
  /// By one thread, before a barrier.
  __device__ static void prepare(uint64_t& barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier))
                 : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }

  __device__ explicit Arrivals(uint64_t& barrier) : barrier_(shared_address(&barrier)) {}

  /// By one thread: a multiple of 16 bytes, from and to multiples of 16.
  __device__ void begin(void* to, const void* from, uint32_t bytes) const {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_),
                 "r"(bytes)
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(to)),
        "l"(from), "r"(bytes), "r"(barrier_)
        : "memory");
  }

  /// By all threads, once for each copy.
  __device__ void wait() {
    asm volatile(
        "{\n.reg .pred there;\n"
        "again:\nmbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n"
        "@!there bra again;\n}" ::"r"(barrier_),
        "r"(phase_)
        : "memory");
    phase_ ^= 1;
  }

 private:
  uint32_t barrier_;
  uint32_t phase_ = 0;
};

/// Of a matrix in shared memory, for wgmma: 8 rows every 1024 bytes, 128-byte swizzle.
__device__ inline uint64_t described(uint32_t address) {
  return uint64_t{(address & 0x3FFFF) >> 4} | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 |
         uint64_t{1} << 62;
}

constexpr int kProductRows = 64, kProductColumns = 128, kProductDepth = 16;
/// A thread's share of a product: rows 16 (its warp) + l / 4 + {0, 8} of lane l and, eight columns
/// by eight, 2 (l % 4) + {0, 1}: in the order column, row, eight.
constexpr int kShare = kProductRows * kProductColumns / kGroupThreads;

/// sums += left right^T, 64 x 16 and 128 x 16 numbers of bf16 that begin at these addresses.
__device__ inline void begin_product(float (&d)[kShare], uint32_t left, uint32_t right) {
#define FOUR(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define SIXTEEN(i) FOUR(i), FOUR(i + 4), FOUR(i + 8), FOUR(i + 12)
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
      "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "
      "%64, %65, 1, 1, 1, 0, 0;"
      : SIXTEEN(0), SIXTEEN(16), SIXTEEN(32), SIXTEEN(48)
      : "l"(described(left)), "l"(described(right)));
#undef SIXTEEN
#undef FOUR
}

/// Before the first of several products: what was written to `d` by other means is.
__device__ inline void before_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

/// Until all products are made.
__device__ inline void finish_products(float (&d)[kShare]) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (float& sum : d) asm volatile("" : "+f"(sum)::"memory");  // here, and not before, it is known
}

}  // namespace tasks::operators::kernels
