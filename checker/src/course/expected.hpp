#pragma once
/// Reads the results that plain programs must show or print.
#include <filesystem>

#include "course/course.hpp"
#include "course/mapping.hpp"

namespace checker {

/// Of the keys results, numbers, numbers_a_rank and without; or of expected, a text for each rank
/// of each of the step's worlds. Throws Error "file:line: what".
void read_expected(const std::filesystem::path& file, const Mapping& mapping, Step& step);

}  // namespace checker
