#pragma once
#include <string>

#include "judge/oracle.hpp"

namespace checker::rules {

/// Losses, epochs and line ends are to be as the program printed them as given; in which words,
/// nobody asks. Returns what is wrong with a line ("holds the losses of several epochs"), or
/// nothing.
std::string wrong_wording(const std::string& line, const WorldTruth& truth);

}  // namespace checker::rules
