#pragma once
#include <string>

#include "support/project.hpp"

namespace checker {

/// What tells one version of the course from another: "0.1.0-1f2e3d4c".
std::string course_version(const Project& project);

/// Where pack writes it, a line of text.
constexpr const char* kVersionFile = "course-version";

}  // namespace checker
