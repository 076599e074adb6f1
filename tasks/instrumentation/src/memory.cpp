#include "instrumentation/memory.hpp"

#include <c10/core/Allocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <limits>

#include "distributed_utils/error.hpp"
#include "instrumentation/recording.hpp"

namespace instrumentation::memory {
namespace {

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

// Of all threads.
std::atomic<uint64_t> live{0}, most{0}, least{0}, most_allowed{kNoLimit};

std::string& name_of_limit() {
  static auto* const name = new std::string;  // leaked: tensors are freed until the very end
  return *name;
}

[[noreturn]] void refuse(uint64_t wanted, uint64_t held, uint64_t allowed) {
  constexpr double kMega = 1e6;
  throw distributed_utils::Error(fmt::format(
      "out of memory: a tensor of {:.2f} MB does not fit. This rank's tensors take {:.2f} MB "
      "already, "
      "and {} allows {:.2f} MB. Fix: a smaller model or batch, or more ranks that share the "
      "parameters, their gradients and the optimizer's state (FullyShardedDataParallel).",
      double(wanted) / kMega, double(held) / kMega, name_of_limit(), double(allowed) / kMega));
}

void add(uint64_t bytes) {
  const uint64_t now = live.fetch_add(bytes) + bytes;
  if (now > most_allowed) {
    live -= bytes;
    refuse(bytes, now - bytes, most_allowed);
  }
  for (uint64_t before = most; now > before && !most.compare_exchange_weak(before, now);) {
  }
}

void take_away(uint64_t bytes) {
  const uint64_t now = live.fetch_sub(bytes) - bytes;
  for (uint64_t before = least; now < before && !least.compare_exchange_weak(before, now);) {
  }
}

// Before each block stands its size, in as many bytes as blocks are aligned to. oneDNN wants a
// block's context to be its data.
class CountingAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, c10::Device(c10::kCPU)};
    add(bytes);
    char* block = nullptr;
    try {
      block = static_cast<char*>(c10::alloc_cpu(bytes + kHead));
    } catch (...) {
      take_away(bytes);
      throw;
    }
    std::memcpy(block, &bytes, sizeof bytes);
    return {block + kHead, block + kHead, &release, c10::Device(c10::kCPU)};
  }

  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  static constexpr size_t kHead = c10::gAlignment;

  static void release(void* data) {
    if (data == nullptr) return;
    char* const block = static_cast<char*>(data) - kHead;
    size_t bytes = 0;
    std::memcpy(&bytes, block, sizeof bytes);
    take_away(bytes);
    c10::free_cpu(block);
  }
};

}  // namespace

void count() {
  static const bool counts = [] {
    static auto* const allocator = new CountingAllocator;  // leaked: as above
    c10::SetAllocator(c10::kCPU, allocator, /*priority=*/1);
    return true;
  }();
  (void)counts;
}

Counted look() {
  const uint64_t now = live;
  return {.live = now, .most = most.exchange(now), .least = least.exchange(now)};
}

void record(Moment moment, const Counted& counted) {
  recording::record_one(
      Kind::allocated,
      AllocatedRecord{
          .moment = moment, .live = counted.live, .most = counted.most, .least = counted.least});
}

void limit(uint64_t bytes, const std::string& name) {
  count();
  name_of_limit() = name;
  most_allowed = bytes;
}

}  // namespace instrumentation::memory
