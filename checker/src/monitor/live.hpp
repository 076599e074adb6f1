#pragma once
/// Shows a running run in the terminal.
#include <string>
#include <vector>

#include "monitor/run.hpp"
#include "report/look.hpp"

namespace checker::monitor {

/// What the run has come to, and what its ranks did and its GPUs were in the last `window` seconds
/// of it.
std::vector<std::string> live_lines(const Run& run, double window, const Look& look);

}  // namespace checker::monitor
