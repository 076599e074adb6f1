#pragma once
/// Judges what a job does after the signal that comes before its time limit.
#include <optional>

#include "judge/job_rules.hpp"

namespace checker {

/// Every rank hears of it, has the time to save, and the job goes back into the queue; but not
/// where it has ended by itself or failed. Nothing if it is so.
std::optional<Symptom> judge_signal(const JobContext& context);

}  // namespace checker
