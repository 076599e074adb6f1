#pragma once
#include <cstddef>
#include <filesystem>

namespace distributed_utils::detail {

/// A file that appears under its name only when it is whole and on disk: written beside it under a
/// temporary name, synced, renamed, and the folder synced. Without commit() nothing is left.
class AtomicFile {
 public:
  /// Throws Error if the folder does not exist or cannot be written.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, size_t size);
  void commit();

 private:
  [[noreturn]] void fail(const char* doing) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

/// Has the names in a folder on disk. Where folders cannot be synced (some network file systems)
/// they are not worse off than ordinary ones. Throws Error.
void sync_folder(const std::filesystem::path& folder);

}  // namespace distributed_utils::detail
