#pragma once
/// The programs of steps and solutions: what they are called and where they lie.
#include <filesystem>
#include <string>

#include "course/course.hpp"
#include "support/project.hpp"

namespace checker {

/// The program of a step: what the student wrote, or the reference.
struct Program {
  std::string target;            ///< "step_02", "solution_02"
  std::filesystem::path file;    ///< in the build folder
  std::filesystem::path output;  ///< where its runs write unless told otherwise
};

Program find_program(const Project& project, const Step& step, bool solution);

}  // namespace checker
