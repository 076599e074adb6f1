#pragma once
/// What a trainer is told on its command line.
#include <filesystem>
#include <string>

#include "verbs/verbs.hpp"

namespace checker {

/// The trainer's arguments with --output added, unless there already. Makes the folder.
Arguments with_output(const Arguments& arguments, const std::filesystem::path& output);

/// True if an argument is this option: "--output" or "--output=...".
bool has_option(const Arguments& arguments, const std::string& option);

}  // namespace checker
