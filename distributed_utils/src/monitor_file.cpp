#include "monitor_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "distributed_utils/error.hpp"

namespace distributed_utils::detail {

namespace {

constexpr uint64_t kLargest = 256 << 20;

constexpr uint64_t padded_size(uint64_t size) {
  return (size + monitoring::kAlignment - 1) / monitoring::kAlignment * monitoring::kAlignment;
}

}  // namespace

MonitorFile::MonitorFile(const std::filesystem::path& path, monitoring::Header header)
    : file_(open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (file_ < 0 || !grow()) {
    const int error = errno;
    if (file_ >= 0) close(file_);
    throw Error(fmt::format("{}: cannot be made: {}.", path.string(), std::strerror(error)));
  }
  header.check = 0;
  header.check = monitoring::checksum(std::as_bytes(std::span(&header, 1)));
  new (chunk_) monitoring::Header(header);
  at_ = sizeof header;
}

MonitorFile::~MonitorFile() {
  if (chunk_ != nullptr) munmap(chunk_, monitoring::kChunk);
  close(file_);
}

bool MonitorFile::grow() {
  const uint64_t begin = chunk_end_;
  if (begin + monitoring::kChunk > kLargest) return false;
  const int error = posix_fallocate(file_, static_cast<off_t>(begin), monitoring::kChunk);
  if (error != 0) {
    errno = error;
    return false;
  }
  void* memory = mmap(nullptr, monitoring::kChunk, PROT_READ | PROT_WRITE, MAP_SHARED, file_,
                      static_cast<off_t>(begin));
  if (memory == MAP_FAILED) return false;
  if (chunk_ != nullptr) munmap(chunk_, monitoring::kChunk);
  chunk_ = static_cast<std::byte*>(memory);
  at_ = 0;
  chunk_end_ = begin + monitoring::kChunk;
  return true;
}

void MonitorFile::put(monitoring::Kind kind, uint64_t time, std::span<const std::byte> payload) {
  auto* header = new (chunk_ + at_) monitoring::RecordHeader{
      .size = static_cast<uint32_t>(payload.size()), .kind = kind, .check = 0, .nanoseconds = time};
  std::ranges::copy(payload, chunk_ + at_ + sizeof(monitoring::RecordHeader));
  // Last: whoever reads it, or finds it after this process was killed, knows that all is there.
  std::atomic_ref(header->check)
      .store(monitoring::record_check(*header, payload), std::memory_order_release);
  at_ += padded_size(sizeof(monitoring::RecordHeader) + payload.size());
}

// Its payload is left as it is, and no part of the check.
void MonitorFile::pad() {
  const uint64_t left = monitoring::kChunk - at_;
  if (left == 0) return;
  monitoring::RecordHeader header{
      .size = static_cast<uint32_t>(left - sizeof(monitoring::RecordHeader)),
      .kind = monitoring::Kind::padding,
      .check = 0,
      .nanoseconds = 0};
  header.check = monitoring::record_check(header, {});
  std::memcpy(chunk_ + at_, &header, sizeof header);
}

bool MonitorFile::append(monitoring::Kind kind, uint64_t time, std::span<const std::byte> payload) {
  const uint64_t size = padded_size(sizeof(monitoring::RecordHeader) + payload.size());
  if (size > monitoring::kChunk) return false;
  const std::lock_guard lock(mutex_);
  if (full_) return false;
  if (at_ + size > monitoring::kChunk) {
    pad();
    if (!grow()) {
      full_ = true;
      return false;
    }
  }
  put(kind, time, payload);
  return true;
}

}  // namespace distributed_utils::detail
