#pragma once
/// What somebody who mistyped a name most likely meant.
#include <span>
#include <string>
#include <string_view>

namespace tasks {

/// The candidate nearest to `word`, the earliest of equals. There must be one.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

/// "unknown option '--epoch'; did you mean '--epochs'?"
std::string unknown(std::string_view kind, std::string_view word,
                    std::span<const std::string_view> candidates);

}  // namespace tasks
