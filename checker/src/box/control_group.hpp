#pragma once
/// Limits for a whole tree of processes: cgroups(7), version 1 or 2, where we may make one.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

namespace checker {

class ControlGroup {
 public:
  /// A new group with these limits, or null where none can be made.
  static std::unique_ptr<ControlGroup> make(uint64_t memory, uint64_t processes);
  /// Removes what runs that were killed have left behind.
  static void remove_orphans();

  /// Kills what is in it.
  ~ControlGroup();
  ControlGroup(const ControlGroup&) = delete;
  ControlGroup& operator=(const ControlGroup&) = delete;

  /// Whoever writes his process's number into all of these is in it.
  std::vector<std::filesystem::path> procs_files() const;

 private:
  explicit ControlGroup(std::vector<std::filesystem::path> folders);

  std::vector<std::filesystem::path> folders_;
};

}  // namespace checker
