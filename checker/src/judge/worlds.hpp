#pragma once
/// Chooses the worlds in which a program is judged.
#include <string>
#include <vector>

#include "course/course.hpp"

namespace checker {

struct Worlds {
  std::vector<WorldShape> shapes;
  std::vector<std::string> not_checked;  ///< which ones cannot be tried here, and why
};

/// sizes: as asked for; empty: those of the conditions, which also say which worlds pretend several
/// nodes or form a mesh. On GPUs each rank needs one of its own, and all are on this node. Throws
/// Error where no world can be tried.
Worlds worlds_for(const Conditions& conditions, const std::vector<int>& sizes, bool on_gpus);

/// What no check of the step on this device can tell.
std::vector<std::string> not_checked_on(const std::string& device, const Course& course,
                                        const Step& step);

}  // namespace checker
