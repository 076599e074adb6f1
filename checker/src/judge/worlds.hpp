#pragma once
/// In which worlds a program is judged.
#include <string>
#include <vector>

#include "course/course.hpp"

namespace checker {

struct Worlds {
  std::vector<std::vector<size_t>> nodes;  ///< of each world: the node of each rank
  std::vector<std::string> not_checked;    ///< which ones cannot be tried here, and why
};

/// sizes: as asked for; empty: those of the chapter, which also says which worlds pretend several
/// nodes. On GPUs each rank needs one of its own, and all are on this node. Throws Error where no
/// world can be tried.
Worlds worlds_for(const Chapter& chapter, const std::vector<int>& sizes, bool on_gpus);

}  // namespace checker
