#pragma once
/// A report as text that programs read; watch's judge, a process of its own, hands it over so.
#include <string>
#include <string_view>

#include "judge/verdict.hpp"

namespace checker {

/// One line.
std::string to_json(const Report& report);

/// What to_json wrote. Throws Error if it is anything else.
Report report_from_json(std::string_view text);

}  // namespace checker
