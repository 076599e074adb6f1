#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/project.hpp"

namespace checker {

/// Builds these targets with one line on the terminal. On failure prints what the compiler said,
/// without the build tool's own words, and throws Error.
void build_targets(const Project& project, std::span<const std::string> targets,
                   const std::string& title);

struct BuildResult {
  bool success = false;
  bool idle = false;  ///< there was nothing to do
  int interrupted_by = 0;
  std::vector<std::string> output;

  /// Whether a source of the target was compiled.
  bool compiled(const std::string& target) const;
};

/// Builds these targets without a word; on_progress gets "[3/17]".
BuildResult build_quietly(const Project& project, std::span<const std::string> targets,
                          const std::function<void(std::string_view)>& on_progress = {});

/// What matters in a failed build's output: no "[1/7] Building", no "FAILED:", no command lines.
std::vector<std::string> compiler_messages(std::span<const std::string> output);

}  // namespace checker
