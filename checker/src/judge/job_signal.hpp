#pragma once
/// What becomes of a job that is told that its time is nearly up.
#include <optional>

#include "judge/job_rules.hpp"

namespace checker {

/// Every rank hears of it, has the time to save, and the job goes back into the queue; but not
/// where it has ended by itself or failed. Nothing if it is so.
std::optional<Symptom> judge_signal(const JobContext& context);

}  // namespace checker
