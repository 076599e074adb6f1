#pragma once
/// Judges a step on every save.
#include <chrono>
#include <functional>

#include "judge/judging.hpp"

namespace checker {

struct WatchOptions {
  std::chrono::milliseconds interval{300};  ///< between two looks at the files
  /// Asked after each look; false ends the watch. For tests; may be empty.
  std::function<bool()> keep_going = {};
};

/// Judges the step, and again whenever a file of it has been saved, until a key or a signal ends
/// it. On a terminal one page shows how things stand; else each verdict is printed as it comes.
/// Returns the exit status.
int watch(const Project& project, const Course& course, const Step& first, const Judge& judge,
          const WatchOptions& options = {});

}  // namespace checker
