#pragma once
/// A run as one page that needs no network.
#include <string>

#include "monitor/rules.hpp"

namespace checker::monitor {

std::string to_page(const Run& run, const Figures& figures);

/// What begins and ends every page: style and script are inside.
std::string page_begin(const std::string& title);
std::string page_end();

}  // namespace checker::monitor
