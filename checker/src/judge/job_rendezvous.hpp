#pragma once
/// Where the ranks of a job are told to meet.
#include <optional>

#include "judge/job_rules.hpp"

namespace checker {

/// The same place for all: the job's first node, at a port of the job's own. Nothing if it is so.
std::optional<Symptom> judge_rendezvous(const JobContext& context);

}  // namespace checker
