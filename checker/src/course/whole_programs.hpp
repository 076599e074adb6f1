#pragma once
/// Programs that are not edits of the reference: written by people who had not seen the rules, with
/// the verdict that they expect. A program is a folder:
///
///   rounds/1/averages_every_second_step/train.cpp      the file of the step, as a student has it
///                                       expected.yaml
///
///   step: 4                  # or: C4
///   verdict: wrong           # or: right
///   todo: 8                  # of a wrong one: the TODO to be named first, of this step or before
///   or: [9]                  # others that a fair teacher could name as well
///   why: What the program does, and why that is wrong or right.
#include <filesystem>
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
  std::string file;  ///< "train.cpp", "07_multi_node.sbatch"
  bool job = false;  ///< the file is the job script
  std::string text;
};

/// All that lie in the folder or below, by name; none if there is no such folder. Throws Error
/// "file:line: what".
std::vector<WholeProgram> load_whole_programs(const std::filesystem::path& folder,
                                              const Course& course);

/// Those of all chapters' rounds.
std::vector<WholeProgram> load_whole_programs(const Course& course);

}  // namespace checker
