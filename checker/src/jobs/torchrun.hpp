#pragma once
/// The torchrun that job scripts start ranks with.
#include <filesystem>
#include <optional>
#include <string>

#include "support/project.hpp"

namespace checker {

/// The one that ./workbook installs; job scripts find it first.
std::filesystem::path own_torchrun(const Project& project);

/// Why it cannot start ranks, in its own words; nothing if it runs. That a file is there proves
/// nothing: without torch's Python packages it ends at once. Asked once for each program, because
/// the answer takes seconds; processes forked later know it, too.
std::optional<std::string> why_not_running(const std::filesystem::path& torchrun);

/// The same of the project's own, remembered on disk while it runs: importing torch takes two
/// seconds in every check. A package that comes or goes makes it ask again.
std::optional<std::string> why_own_not_running(const Project& project);

}  // namespace checker
