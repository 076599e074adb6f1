#pragma once
/// The rules of job scripts (TODO 14 to 17). They look at what a job saw when it ran, never at its
/// text.
#include "jobs/job.hpp"
#include "judge/scene.hpp"

namespace checker {

namespace feature {
inline constexpr std::string_view gpus = "GPUS", master = "MASTER", torchrun = "TORCHRUN",
                                  nodes = "NODES";
}  // namespace feature

struct JobScene {
  const JobSeen& job;    ///< with the trainer at work
  const JobSeen& other;  ///< the same script as another job
  const Course& course;
  const Step& step;
  size_t gpus_per_node;          ///< that a node has
  std::vector<double> reported;  ///< by rank 0
  double loss_tolerance;         ///< relative
  std::vector<double> alone;     ///< by one rank on the same global batch; empty: not known, or not
                                 ///< what ranks come to
};

/// In the order of the TODOs.
Findings judge_job(const JobScene& scene);

}  // namespace checker
