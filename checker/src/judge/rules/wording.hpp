#pragma once
#include <optional>
#include <string>

#include "judge/oracle.hpp"
#include "judge/symptom.hpp"

namespace checker::rules {

/// Losses, epochs and line ends are to be as the original program printed them; in which words,
/// nobody asks. Returns what is wrong with a line ("several_epochs"), or nothing.
std::optional<EvidenceLine> wrong_wording(const std::string& line, const ExpectedWorld& truth);

}  // namespace checker::rules
