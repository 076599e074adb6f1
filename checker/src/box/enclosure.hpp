#pragma once
/// Enclosure isolates one judgement from the machine: a network without anything but a loopback,
/// and folders in memory that vanish with it.
#include <cstdint>
#include <filesystem>

namespace checker {

/// From here on, this process and those that it starts have mounts and, if asked for, a network of
/// their own. Throws Error where that cannot be.
void enclose(bool own_network = true);

/// A folder in memory that holds so many bytes and files, as long as this object lives. Only after
/// enclose(). Throws Error.
class LimitedFolder {
 public:
  LimitedFolder(std::filesystem::path folder, uint64_t bytes, uint64_t files);
  ~LimitedFolder();
  LimitedFolder(const LimitedFolder&) = delete;
  LimitedFolder& operator=(const LimitedFolder&) = delete;

  const std::filesystem::path& path() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

/// Bytes that have come over the loopback since it is there.
uint64_t loopback_bytes();

}  // namespace checker
