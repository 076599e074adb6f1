#include "nearest.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "console/edit_distance.hpp"

namespace tasks {

std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates) {
  return *std::min_element(candidates.begin(), candidates.end(), [&](auto left, auto right) {
    return console::edit_distance(word, left) < console::edit_distance(word, right);
  });
}

std::string unknown(std::string_view kind, std::string_view word,
                    std::span<const std::string_view> candidates) {
  return fmt::format("unknown {} '{}'; did you mean '{}'?", kind, word, nearest(word, candidates));
}

}  // namespace tasks
