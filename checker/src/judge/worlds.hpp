#pragma once
/// Chooses the worlds in which a program is judged.
#include <optional>
#include <string>
#include <vector>

#include "course/course.hpp"

namespace checker {

struct Worlds {
  std::vector<WorldShape> shapes;
  std::vector<std::string> not_checked;  ///< which ones cannot be tried here, and why
};

/// sizes: as asked for; empty: those of the conditions, which also say which worlds pretend several
/// nodes or form a mesh. gpus: how many this node has, nothing for a check on CPUs. On GPUs each
/// rank needs one of its own, and all are on this node: a world of the conditions that is too large
/// gets as many ranks as there are GPUs. Throws Error where no world can be tried.
Worlds worlds_for(const Conditions& conditions, const std::vector<int>& sizes,
                  std::optional<size_t> gpus);

}  // namespace checker
