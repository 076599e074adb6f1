#pragma once
#include <string>
#include <vector>

#include "course/course.hpp"
#include "report/look.hpp"
#include "support/project.hpp"

namespace checker {

/// What differs between the student's files of a step and the solution, with a plain word before it
/// that this is the solution.
std::vector<std::string> step_diff(const Project& project, const Course& course, const Step& step,
                                   const Look& look);

/// The same for one TODO: what it changes in the original file, once the step's earlier ones are
/// done.
std::vector<std::string> todo_diff(const Course& course, const Todo& todo, const Look& look);

}  // namespace checker
