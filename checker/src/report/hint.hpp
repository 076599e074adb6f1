#pragma once
#include <string>
#include <vector>

#include "ladder/ladder.hpp"
#include "report/look.hpp"

namespace checker {

/// The TODO's hint, or the explanation that stands behind it.
std::vector<std::string> hint_lines(const Ladder& ladder, const Todo& todo, bool explanation,
                                    const Look& look);

}  // namespace checker
