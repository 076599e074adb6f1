#pragma once
/// Help with a TODO, in three depths: its hint, the shape of the code, and what is behind it. The
/// answer is diff's.
#include <map>
#include <string>
#include <vector>

#include "course/course.hpp"
#include "report/look.hpp"
#include "state/memory.hpp"

namespace checker {

enum class HintPart { hint, shape, explanation };

/// The TODO's name and the part; the shape comes with the hint above it.
std::vector<std::string> hint_lines(const Course& course, const Todo& todo, HintPart part,
                                    const Look& look);

/// Which depth was used for which TODO, in a line or two; nothing if none was.
std::vector<std::string> help_lines(const Course& course, const std::map<int, Help>& help,
                                    const Look& look);

}  // namespace checker
