#pragma once
#include "judge/judging.hpp"
#include "verbs/verbs.hpp"

namespace checker {

/// The verb check with this judge.
int check_with(const Project& project, const Arguments& arguments, const Judge& judge);

}  // namespace checker
