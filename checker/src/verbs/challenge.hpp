#pragma once
#include "judge/judging.hpp"
#include "verbs/verbs.hpp"

namespace checker {

/// The verb, with any judge.
int challenge_with(const Project& project, const Arguments& arguments, const Judge& judge);

}  // namespace checker
