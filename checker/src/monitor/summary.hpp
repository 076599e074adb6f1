#pragma once
#include <string>
#include <vector>

#include "monitor/figures.hpp"
#include "report/look.hpp"

namespace checker::monitor {

/// What the page begins with, for the terminal.
std::vector<std::string> to_lines(const Run& run, const Figures& figures, const Look& look);

}  // namespace checker::monitor
