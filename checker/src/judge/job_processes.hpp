#pragma once
/// What a job script starts on its nodes.
#include <optional>

#include "judge/job_rules.hpp"

namespace checker {

/// One torchrun a node, one rank a GPU, one world, and the script's options for each rank. Nothing
/// if it is so.
std::optional<Symptom> judge_processes(const JobContext& context);

/// Slurm's word for how a job stands, and the last lines that the job wrote.
std::vector<EvidenceLine> last_words_of(const JobSeen& job);

}  // namespace checker
