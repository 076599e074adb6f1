#include "distributed_utils/recording.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>  // NOLINT(modernize-deprecated-headers): clock_gettime is POSIX's
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>
#include <string>

#include "distributed_utils/error.hpp"
#include "distributed_utils/launch.hpp"
#include "foreign_groups.hpp"

namespace distributed_utils::recording {
namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free &&
                  std::atomic<uint16_t>::is_always_lock_free,
              "processes share these through memory");

constexpr uint64_t kAlignment = 8;

class Log {
 public:
  explicit Log(const std::string& path) {
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    struct stat status = {};
    if (file < 0 || fstat(file, &status) != 0 ||
        static_cast<size_t>(status.st_size) < sizeof(Header)) {
      throw Error(
          fmt::format("DISTRIBUTED_UTILS_RECORD='{}': wanted a file made before, as long as the "
                      "log may grow: {}.",
                      path, std::strerror(errno)));
    }
    capacity_ = static_cast<uint64_t>(status.st_size);
    void* memory = mmap(nullptr, capacity_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) {
      throw Error(fmt::format("{}: cannot be mapped: {}.", path, std::strerror(errno)));
    }
    base_ = static_cast<std::byte*>(memory);
    header_ = new (base_) Header{.magic = kMagic, .reserved = sizeof(Header), .dropped = 0};
  }

  void append(Kind kind, std::span<const std::byte> payload) {
    const uint64_t size =
        (sizeof(RecordHeader) + payload.size() + kAlignment - 1) / kAlignment * kAlignment;
    uint64_t at = header_->reserved.load(std::memory_order_relaxed);
    do {
      if (at + size > capacity_) {
        header_->dropped.fetch_add(1, std::memory_order_relaxed);
        return;
      }
    } while (!header_->reserved.compare_exchange_weak(at, at + size, std::memory_order_relaxed));
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    auto* record = new (base_ + at) RecordHeader{
        .size = static_cast<uint32_t>(payload.size()),
        .kind = kind,
        .ready = 0,
        .nanoseconds =
            static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec),
        .thread = static_cast<uint64_t>(syscall(SYS_gettid)),
    };
    std::ranges::copy(payload, base_ + at + sizeof(RecordHeader));
    // Released last: a reader in another process that sees it sees the whole record.
    record->ready.store(1, std::memory_order_release);
  }

 private:
  std::byte* base_ = nullptr;
  Header* header_ = nullptr;
  uint64_t capacity_ = 0;
};

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

/// Null if this process does not record. Leaked: ranks record until the very end.
Log* log() {
  static Log* const instance = [] {
    const auto path = process_environment("DISTRIBUTED_UTILS_RECORD");
    if (!path || path->empty()) return static_cast<Log*>(nullptr);
    auto* made = new Log(*path);
    std::ifstream maps("/proc/self/maps");
    const std::string text(std::istreambuf_iterator<char>(maps), {});
    made->append(Kind::start, bytes_of(text));
    detail::observe_foreign_groups();
    // NOLINTNEXTLINE(bugprone-unused-return-value): without it a regular exit looks like a crash,
    // no more
    (void)std::atexit([] { record(Kind::exit, std::string_view()); });
    return made;
  }();
  return instance;
}

}  // namespace

bool enabled() { return log() != nullptr; }

void record(Kind kind, std::span<const std::byte> payload) {
  if (Log* into = log()) into->append(kind, payload);
}

void record(Kind kind, std::string_view text) { record(kind, bytes_of(text)); }

void record_number(Kind kind, uint64_t number) {
  record(kind, std::as_bytes(std::span(&number, 1)));
}

}  // namespace distributed_utils::recording
