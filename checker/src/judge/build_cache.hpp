#pragma once
/// Builds programs from other texts than those in steps/ and solutions/, exactly as a step is
/// built, but several at a time.
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "judge/recipe.hpp"
#include "process/fork_server.hpp"
#include "support/project.hpp"

namespace checker {

/// A file of a program, and what it says.
struct NamedText {
  std::string name, text;
};

/// All that the files say, one after the other.
std::string text_of(std::span<const NamedText> files);

struct CachedProgram {
  std::string name;              ///< of its folder in <build>/workshop
  std::vector<NamedText> files;  ///< the program's, that with main() first
  // Set by BuildCache::build.
  std::filesystem::path program{};    ///< empty if it did not build
  bool serves = false;                ///< it can be a fork server
  std::vector<std::string> output{};  ///< what compiler and linker said then
};

/// Where they are built. Several processes may build there: one at a time does.
class BuildCache {
 public:
  /// Builds what all trainers need, and further targets: the tasks'. Throws Error if that fails.
  /// The project must outlive it. Without building, what was built before is taken, as on a compute
  /// node without a compiler.
  BuildCache(const Project& project, bool builds, std::vector<std::string> targets = {});

  /// Builds the pieces; what was built from the same text before is left. Pieces are compiled
  /// together where they can be (see judge/bundle.hpp), as many bundles at a time as there are
  /// cores.
  void build(std::span<CachedProgram> pieces) const;

 private:
  /// Some pieces that become one program.
  using Bundle = std::vector<CachedProgram*>;

  std::filesystem::path folder_of(const CachedProgram& piece) const;
  bool is_built(const CachedProgram& piece) const;
  std::vector<Bundle> bundles_of(const Bundle& pieces) const;
  std::string script_of(const Bundle& bundle) const;
  /// Returns those that did not build.
  std::vector<Bundle> build(std::vector<Bundle> bundles) const;

  const Project& project_;
  bool builds_;
  Recipe recipe_;
};

/// Servers of the pieces that can serve, and of the replay.
ForkServers servers_of(const Project& project, std::span<const CachedProgram> pieces);

}  // namespace checker
