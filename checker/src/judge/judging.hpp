#pragma once
/// What judges a step, as check and watch call it: tests put their own in its place.
#include <functional>

#include "course/course.hpp"
#include "judge/check.hpp"
#include "support/project.hpp"

namespace checker {

/// Judges one step.
using Judge = std::function<Report(const Course&, const Step&, const CheckOptions&)>;

/// check_step for this project, which must outlive it.
Judge judge_of(const Project& project);

}  // namespace checker
