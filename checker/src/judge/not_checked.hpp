#pragma once
/// What a check on this device cannot see. The report lists it, so that nobody takes it for right.
#include <string>
#include <string_view>
#include <vector>

#include "course/course.hpp"

namespace checker {

/// device: "cpu" or "cuda". Nothing for an exercise: it runs on CPUs, wherever it runs.
std::vector<std::string> not_checked_on(std::string_view device, const Course& course,
                                        const Step& step);

}  // namespace checker
