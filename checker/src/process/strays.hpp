#pragma once
#include <sys/types.h>

#include <set>

namespace checker {

/// While it lives, processes that slip away from their parents (setsid, double fork) become
/// children of ours instead of init's, and end() can find them. Threads must not start children
/// meanwhile.
class StrayCatcher {
 public:
  StrayCatcher();
  ~StrayCatcher();
  StrayCatcher(const StrayCatcher&) = delete;
  StrayCatcher& operator=(const StrayCatcher&) = delete;

  /// Collects those that have ended, but for these; their parents would have, or init.
  void collect(const std::set<pid_t>& others) const;

  /// Kills every child that we did not have when this object was made, and what those leave behind.
  void end() const;

 private:
  std::set<pid_t> children_before_;
  int subreaper_before_ = 0;
};

}  // namespace checker
