#pragma once
#include <cstddef>
#include <string_view>

namespace console {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`, in bytes
/// (optimal string alignment).
size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace console
