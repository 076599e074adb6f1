#pragma once
/// The picture of the course that the README shows.
#include <string>

#include "course/course.hpp"

namespace checker {

/// An SVG of the steps as stairs, each with its name, its title and its TODO numbers, for light and
/// dark pages.
std::string picture(const Course& course);

}  // namespace checker
