#pragma once
/// Builds programs from other texts than those in steps/ and solutions/, exactly as a step is
/// built.
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "judge/recipe.hpp"
#include "support/project.hpp"

namespace checker {

struct WorkPiece {
  std::string name;  ///< of its folder in <build>/workshop
  std::string text;
  // Set by Workshop::build.
  std::filesystem::path program;    ///< empty if it did not build
  std::vector<std::string> output;  ///< what compiler and linker said then
};

/// Where they are built.
class Workshop {
 public:
  /// Builds what all trainers need. Throws Error if that fails. The project must outlive it.
  /// Without building, what was built before is taken, as on a compute node without a compiler.
  Workshop(const Project& project, bool builds);

  /// Builds as many at a time as there are cores; what was built from the same text before is left.
  void build(std::span<WorkPiece> pieces) const;

 private:
  std::string script_of(const std::filesystem::path& folder, const std::string& version) const;

  const Project& project_;
  bool builds_;
  Recipe recipe_;
};

}  // namespace checker
