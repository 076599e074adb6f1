#pragma once
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>

#include "instrumentation/log.hpp"

namespace instrumentation {

/// Writes a log (see instrumentation/log.hpp). Growing allocates the disk's blocks before they are
/// mapped: a full disk is an error here, and no SIGBUS later.
class LogFile {
 public:
  /// An empty log of at most `capacity` bytes. Throws Error.
  LogFile(const std::filesystem::path& path, Header header, uint64_t capacity);
  /// A log in a file that somebody made before: it holds what the file is long. Throws Error.
  LogFile(const std::filesystem::path& path, Header header);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// False, and counted, if there is no room for it. Thread-safe.
  bool append(Kind kind, uint64_t time, std::span<const std::byte> payload);

  /// Bytes that are in use so far.
  uint64_t length() const;

 private:
  void begin(Header header);
  bool grow(uint64_t size);
  bool make_room(uint64_t size);
  void put(Kind kind, uint64_t time, std::span<const std::byte> payload);
  void pad();

  // Opened whenever it grows: a program that closes all descriptors, or uses their numbers again,
  // neither loses its log nor writes it elsewhere.
  std::filesystem::path path_;
  uint64_t capacity_ = 0;
  std::mutex mutex_;
  Header* header_ = nullptr;     // in the first window, which stays mapped
  uint64_t first_window_ = 0;    // its size
  std::byte* window_ = nullptr;  // the chunks that are written to
  uint64_t window_size_ = 0;
  uint64_t window_begin_ = 0;  // in the file
  uint64_t at_ = 0;            // in the window
};

}  // namespace instrumentation
