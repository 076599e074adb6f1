#include "log_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "distributed_utils/error.hpp"

namespace instrumentation {

namespace {

// Part of a file, which is made to have room on the disk; null, with errno, if that fails.
std::byte* map(const std::filesystem::path& path, uint64_t begin, uint64_t size) {
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return nullptr;
  const auto from = static_cast<off_t>(begin);
  void* memory = MAP_FAILED;
  int error = posix_fallocate(file, from, static_cast<off_t>(size));
  if (error == 0) {
    memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, from);
    if (memory == MAP_FAILED) error = errno;
  }
  close(file);
  errno = error;
  return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
}

}  // namespace

LogFile::LogFile(const std::filesystem::path& path, Header header, uint64_t capacity)
    : path_(std::filesystem::absolute(path)), capacity_(capacity) {
  const int file = open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file >= 0) close(file);
  begin(header);
}

LogFile::LogFile(const std::filesystem::path& path, Header header)
    : path_(std::filesystem::absolute(path)) {
  struct stat status = {};
  if (stat(path_.c_str(), &status) == 0) capacity_ = static_cast<uint64_t>(status.st_size);
  begin(header);
}

void LogFile::begin(Header header) {
  errno = ENOSPC;  // what grow() leaves where the capacity is too small
  if (!grow(sizeof header)) {
    throw distributed_utils::Error(
        fmt::format("{}: the log cannot be made: {}.", path_.string(), std::strerror(errno)));
  }
  header.check = header_check(header);
  header.length = sizeof header;
  header.dropped = 0;
  header_ = new (window_) Header(header);
  at_ = sizeof header;
}

LogFile::~LogFile() {
  if (window_begin_ != 0) munmap(window_, window_size_);
  munmap(header_, first_window_);
}

uint64_t LogFile::length() const {
  return std::atomic_ref(header_->length).load(std::memory_order_relaxed);
}

// A new window behind the one that is written to. The first stays: the header is in it.
bool LogFile::grow(uint64_t size) {
  const uint64_t begin = window_begin_ + window_size_;
  size = (size + kChunk - 1) / kChunk * kChunk;
  if (begin + size > capacity_) return false;
  auto* const memory = map(path_, begin, size);
  if (memory == nullptr) return false;
  if (window_ == nullptr) {
    first_window_ = size;
  } else {
    pad();
    if (window_begin_ != 0) munmap(window_, window_size_);
  }
  window_ = memory;
  window_begin_ = begin;
  window_size_ = size;
  at_ = 0;
  return true;
}

void LogFile::put(Kind kind, uint64_t time, std::span<const std::byte> payload) {
  const auto thread = static_cast<uint32_t>(syscall(SYS_gettid));
  auto* header = new (window_ + at_) RecordHeader{.size = static_cast<uint32_t>(payload.size()),
                                                  .check = 0,
                                                  .kind = kind,
                                                  .reserved = 0,
                                                  .thread = thread,
                                                  .nanoseconds = time};
  if (kind != Kind::padding) std::ranges::copy(payload, window_ + at_ + sizeof(RecordHeader));
  // Last: whoever reads it, or finds it after this process was killed, knows that all is there.
  std::atomic_ref(header->check).store(record_check(*header, payload), std::memory_order_release);
  at_ += padded(sizeof(RecordHeader) + payload.size());
  std::atomic_ref(header_->length).store(window_begin_ + at_, std::memory_order_release);
}

// The rest of the window, which was never written to.
void LogFile::pad() {
  const uint64_t left = window_size_ - at_;
  if (left < sizeof(RecordHeader)) return;
  put(Kind::padding, 0, {window_ + at_ + sizeof(RecordHeader), left - sizeof(RecordHeader)});
}

bool LogFile::make_room(uint64_t size) { return at_ + size <= window_size_ || grow(size); }

bool LogFile::append(Kind kind, uint64_t time, std::span<const std::byte> payload) {
  const std::lock_guard lock(mutex_);
  if (payload.size() > UINT32_MAX || !make_room(padded(sizeof(RecordHeader) + payload.size()))) {
    std::atomic_ref(header_->dropped).fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  put(kind, time, payload);
  return true;
}

}  // namespace instrumentation
