#pragma once
/// What a class handed in: a folder or an archive for each student.
#include <filesystem>
#include <string>
#include <vector>

#include "grade/scheme.hpp"

namespace checker::grade {

struct Submission {
  std::string name;  ///< the student's: that of the folder, or of the archive without its ending
  std::filesystem::path path;
  bool archive = false;
  Time handed_in{};   ///< when the archive, or the last file, was changed
  std::string stamp;  ///< other for other files
};

struct Submissions {
  std::vector<Submission> all;       ///< by name
  std::vector<std::string> ignored;  ///< what else lies there
};

/// Throws Error if the folder cannot be read or holds none.
Submissions find_submissions(const std::filesystem::path& folder);

}  // namespace checker::grade
