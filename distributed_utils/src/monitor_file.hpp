#pragma once
#include <atomic>
#include <filesystem>
#include <mutex>
#include <span>

#include "distributed_utils/monitoring.hpp"

namespace distributed_utils::detail {

/// The file that one rank's monitoring goes to. Growing allocates the disk's blocks before they are
/// mapped: a full disk is an error here, and no SIGBUS later.
class MonitorFile {
 public:
  /// Throws Error.
  MonitorFile(const std::filesystem::path& path, monitoring::Header header);
  ~MonitorFile();
  MonitorFile(const MonitorFile&) = delete;
  MonitorFile& operator=(const MonitorFile&) = delete;

  /// False if there is no more room. Thread-safe.
  bool append(monitoring::Kind kind, uint64_t time, std::span<const std::byte> payload);

  /// Bytes of the file so far.
  uint64_t size() const { return chunk_end_; }

 private:
  bool grow();
  void put(monitoring::Kind kind, uint64_t time, std::span<const std::byte> payload);
  void pad();

  int file_ = -1;
  std::mutex mutex_;
  std::byte* chunk_ = nullptr;           // the one that is mapped
  uint64_t at_ = 0;                      // in it
  std::atomic<uint64_t> chunk_end_ = 0;  // in the file
  bool full_ = false;
};

}  // namespace distributed_utils::detail
