#pragma once
/// Checks out and builds another commit of the project, next to this one.
#include <string>

#include "support/project.hpp"

namespace checker::golden {

/// A worktree of the commit in the project's build folder, with a build folder of its own that has
/// this one's compiler, LibTorch and flags. Both go with their owner.
class OtherCommit {
 public:
  /// Throws Error if there is no such commit, or if it cannot be configured.
  OtherCommit(const Project& project, const std::string& commit);
  ~OtherCommit();
  OtherCommit(const OtherCommit&) = delete;
  OtherCommit& operator=(const OtherCommit&) = delete;

  const Project& project() const { return other_; }
  /// "1a2b3c4".
  const std::string& name() const { return name_; }

 private:
  void check_out(const std::string& hash);
  void configure();
  void remove() const;

  Project ours_, other_;
  std::string name_;
};

}  // namespace checker::golden
