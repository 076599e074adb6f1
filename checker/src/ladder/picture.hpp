#pragma once
/// The picture of the ladder that the README shows.
#include <string>

#include "ladder/ladder.hpp"

namespace checker {

/// An SVG of the steps as stairs, each with its name, its title and its TODO numbers, for light and
/// dark pages.
std::string picture(const Ladder& ladder);

}  // namespace checker
