#pragma once
/// Step and solution programs, for the verbs that run them.
#include <string>

#include "ladder/ladder.hpp"
#include "verbs/verbs.hpp"

namespace checker {

/// The program of a step: what the student wrote, or the reference.
struct Program {
  std::string target;            ///< "step_02", "solution_02"
  std::filesystem::path file;    ///< in the build folder
  std::filesystem::path output;  ///< where its runs write unless told otherwise
};

Program find_program(const Project& project, const Step& step, bool solution);

/// The trainer's arguments with --output added, unless there already. Makes the folder.
Arguments with_output(const Arguments& arguments, const std::filesystem::path& output);

/// True if an argument is this option: "--output" or "--output=...".
bool has_option(const Arguments& arguments, const std::string& option);

}  // namespace checker
