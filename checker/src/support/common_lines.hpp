#pragma once
/// Which lines two texts have in common.
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace checker {

/// Pairs of places, in order, of a longest common subsequence of two lists of lines.
std::vector<std::pair<size_t, size_t>> common_lines(std::span<const std::string_view> a,
                                                    std::span<const std::string_view> b);

}  // namespace checker
