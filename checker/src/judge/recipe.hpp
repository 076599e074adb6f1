#pragma once
/// How the build makes a trainer, so that other texts than those in steps/ and solutions/ can be
/// made into programs in exactly the same way.
#include <filesystem>
#include <string>
#include <vector>

#include "support/project.hpp"

namespace checker {

/// Two shell lines, to be run in the build folder.
struct Recipe {
  std::string compile, link;
  std::string source, object, program;  ///< as they stand in there
  std::string libraries;                ///< changes with what programs are linked to

  /// One line that compiles and links another text. Its paths are absolute or relative to the build
  /// folder, and made of plain letters, so that whatever quotes stand around the old ones fit.
  std::string with(const std::string& other_source, const std::string& other_object,
                   const std::string& other_program) const;

  /// What identifies the program that a text becomes.
  std::string version_of(const std::string& text) const;

  /// The project's files and folders that the lines read, but for the source itself.
  std::vector<std::filesystem::path> inputs(const Project& project) const;
};

/// Throws Error if the build does not know how; programs need what the target replay needs.
Recipe recipe_of(const Project& project);

}  // namespace checker
