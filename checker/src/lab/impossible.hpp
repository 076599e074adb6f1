#pragma once
#include <optional>
#include <string>

namespace checker {

/// Why no lab can run on this machine: what is missing, what cannot be checked without it, and how
/// to fix it, in one sentence and a command. Nothing if labs can run.
std::optional<std::string> lab_impossible();

/// Our PATH, and after it the folders where system administrators' programs are, which not
/// everybody's PATH names.
std::string lab_search_path();

}  // namespace checker
