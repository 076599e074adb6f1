#pragma once
#include <string>
#include <vector>

#include "course/course.hpp"
#include "report/look.hpp"

namespace checker {

/// The TODO's hint, or the explanation that stands behind it.
std::vector<std::string> hint_lines(const Course& course, const Todo& todo, bool explanation,
                                    const Look& look);

}  // namespace checker
