#pragma once
/// Short questions to other programs and to headers.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/project.hpp"

namespace checker::doctor {

/// What a command says, without blanks around it; nothing if it is not there, fails, or takes
/// longer than ten seconds.
std::optional<std::string> answer_of(const std::vector<std::string>& command);

/// "13.0" from text that holds "V13.0.88" after the word "release", as "580.95.05" after "": the
/// first version number behind a word; empty if there is none.
std::string version_behind(const std::string& text, const std::string& word);

/// Compares numbers between the dots: 580.65.06 is at least 580.
bool at_least(const std::string& version, const std::string& least);

/// "2.28.9": what a header defines as <prefix>MAJOR, MINOR and PATCH; no numbers if it does not.
std::string version_in(const std::filesystem::path& header, const std::string& prefix);

}  // namespace checker::doctor
