#pragma once
/// The page of a run as a real browser shows it.
#include "browser.hpp"

namespace checker::testing {

/// What headless Chromium made of it: charts and rows, whether pointing and zooming work, whether
/// anything overflows or is asked for over the network, and all that the console said.
std::string run_seen_by_browser(const std::string& page, int width);

}  // namespace checker::testing
