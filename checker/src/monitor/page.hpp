#pragma once
/// Writes a run as one HTML page that needs no network.
#include <pugixml.hpp>
#include <string>

#include "monitor/rules.hpp"

namespace checker::monitor {

std::string to_page(const Run& run, const Figures& figures);

/// The page with these elements, its style and its script.
std::string whole_page(const std::string& title, const pugi::xml_document& body);

}  // namespace checker::monitor
