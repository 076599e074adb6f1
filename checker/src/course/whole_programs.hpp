#pragma once
/// Programs that are not edits of the reference: written by people who had not seen the rules, with
/// the verdict that they expect. A program is a folder:
///
///   rounds/1/averages_every_second_step/train.cpp      one or more of the step's files, as a
///                                                      student has them
///                                       expected.yaml
///
///   step: 4                  # or: C4
///   verdict: wrong           # or: right
///   todo: 8                  # of a wrong one: the TODO to be named first, of this step or before
///   or: [9]                  # others that a fair teacher could name as well
///   why: What the program does, and why that is wrong or right.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "course/course.hpp"

namespace checker {

struct WholeProgram {
  std::string name;
  const Step* step = nullptr;
  bool wrong = false;
  int todo = 0;               ///< of a wrong one
  std::vector<int> or_todos;  ///< may be named in its place
  std::string why;
  /// Those of the step's files that it brings, by name; the others are as the step has them.
  std::map<std::string, std::string> files;
  bool job = false;  ///< the file is the job script
};

/// All that lie in the folder or below, by name; none if there is no such folder. Throws Error
/// "file:line: what".
std::vector<WholeProgram> load_whole_programs(const std::filesystem::path& folder,
                                              const Course& course);

/// Those of all chapters' rounds.
std::vector<WholeProgram> load_whole_programs(const Course& course);

}  // namespace checker
