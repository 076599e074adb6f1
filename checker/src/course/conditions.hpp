#pragma once
/// Reads under which conditions programs are judged.
#include <filesystem>
#include <vector>

#include "course/course.hpp"
#include "course/mapping.hpp"

namespace checker {

/// Of the key plans, or the only plan, whose worlds the key worlds names; nothing where there is
/// neither. Throws Error "file:line: what".
std::vector<Conditions> read_conditions(const std::filesystem::path& file, const Mapping& mapping);

}  // namespace checker
