#pragma once
/// Builds programs from other texts than those in steps/ and solutions/, exactly as a step is
/// built.
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "ladder/ladder.hpp"
#include "support/project.hpp"

namespace checker {

struct WorkPiece {
  std::string name;  ///< of its folder in <build>/workshop
  std::string text;
  const Step* step = nullptr;
  // Set by build_pieces.
  std::filesystem::path program;    ///< empty if it did not build
  std::vector<std::string> output;  ///< what compiler and linker said then
};

/// Builds as many at a time as there are cores; what was built from the same text before is left.
void build_pieces(const Project& project, std::span<WorkPiece> pieces);

}  // namespace checker
