#pragma once
/// Builds what somebody handed in, in a box.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "box/box.hpp"
#include "judge/build_cache.hpp"
#include "judge/recipe.hpp"
#include "judge/verdict.hpp"
#include "support/project.hpp"

namespace checker::grade {

constexpr BoxLimits kBuilding{.memory = 3ULL << 30, .processes = 60, .processor_seconds = 150};

struct BuildRequest {
  std::vector<NamedText> files;    ///< the program's, that with main() first
  std::string shown;               ///< the folder that they are shown in, "steps/02_setup"
  std::filesystem::path folder;    ///< an empty one, of plain letters, for everything
  std::filesystem::path programs;  ///< where programs are kept for equal texts; empty: nowhere
  BoxLimits limits = kBuilding;    ///< of compiler and linker
};

/// Leaves the program at request.folder / kHandedInProgram. Returns the compiler's first error, or
/// that it did not end within the limits of time and memory. box may be null.
std::optional<CompileError> build_hand_in(const Project& project, const Recipe& recipe,
                                          const BuildRequest& request, const Box* box);

}  // namespace checker::grade
