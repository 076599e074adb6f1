#pragma once
/// The files of a step that are the student's: their present texts, the original ones, and the
/// solved ones.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "course/course.hpp"
#include "support/project.hpp"

namespace checker {

/// One file in which a student works.
struct StepFile {
  std::filesystem::path path;      ///< from the project's folder
  std::filesystem::path solution;  ///< that of the reference, which need not be there
  std::string comment;             ///< what begins a comment in it
  std::string given;               ///< as the course hands it out
  std::string solved;              ///< the reference, rendered for the student's program
};

/// The program's files, and the job script if any of the step's TODOs is done in it.
std::vector<StepFile> step_files(const Course& course, const Step& step);

/// The paths of these files, which costs nothing.
std::vector<std::filesystem::path> step_paths(const Course& course, const Step& step);

/// Fingerprints of files by their paths from the project's folder; "" for one that cannot be read.
using Fingerprints = std::map<std::filesystem::path, std::string>;

/// The fingerprints of the step's files now.
Fingerprints take_fingerprints(const Project& project, const Course& course, const Step& step);

/// That of one file; "" if it cannot be read.
std::string fingerprint_of(const Project& project, const std::filesystem::path& file);

}  // namespace checker
