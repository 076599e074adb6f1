#pragma once
/// What check and watch share: the judge, and remembering what it said.
#include <functional>

#include "course/course.hpp"
#include "judge/check.hpp"
#include "support/project.hpp"

namespace checker {

/// Judges one step; tests put another in place of check_step.
using Judge = std::function<Report(const Course&, const Step&, const CheckOptions&)>;

/// check_step for this project, which must outlive it.
Judge judge_of(const Project& project);

}  // namespace checker
