#pragma once
/// The rules of job scripts (TODO 14 to 17). They look at what a job saw when it ran, never at its
/// text.
#include "jobs/job.hpp"
#include "judge/run_context.hpp"

namespace checker {

struct JobContext {
  const JobSeen& job;            ///< with the trainer at work
  const JobSeen& other;          ///< the same script as another job, which got a signal
  size_t gpus_per_node;          ///< that a node has
  size_t nodes;                  ///< of the cluster
  std::vector<double> reported;  ///< by rank 0
  double loss_tolerance;         ///< relative
  std::vector<double> alone;     ///< by one rank on the same global batch; empty: not known, or not
                                 ///< what ranks come to
};

/// The first of each part of the script: what comes first explains what comes later.
Symptoms judge_job(const JobContext& context);

}  // namespace checker
