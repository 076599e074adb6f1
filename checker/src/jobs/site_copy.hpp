#pragma once
/// A copy of the course as far as jobs look at it, to submit from.
#include <filesystem>
#include <functional>
#include <string>

#include "course/course.hpp"

namespace checker {

/// Makes the folder: every job script as the course has it, the site file, and links to the
/// programs and to the Python environment. program: where "step_07" or "solution_07" lies; an empty
/// path for one that is not wanted.
void make_course(const std::filesystem::path& folder, const Course& course,
                 const std::string& site_conf, const std::filesystem::path& venv,
                 const std::function<std::filesystem::path(const std::string& name)>& program);

}  // namespace checker
