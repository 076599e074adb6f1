#pragma once
/// Judging a job script: it is submitted, as it is, to a Slurm of our own.
#include <optional>
#include <string>

#include "box/box.hpp"
#include "judge/run_context.hpp"
#include "support/project.hpp"

namespace checker {

struct JobCheckOptions {
  std::string script;             ///< its text
  std::filesystem::path trainer;  ///< a program that does what the step's trainer does
  const Plan& plan;               ///< what the trainer does; the data lie in `folder`
  std::filesystem::path folder;   ///< for what the jobs leave behind
  const Box* box = nullptr;       ///< where the lab is shut in with the jobs, if it is
};

/// Why job scripts cannot be judged here, or nothing.
std::optional<std::string> job_check_impossible(const Project& project);

struct JobChecked {
  Findings findings;
  bool cut_off = false;   ///< it started nothing, so that of all that comes later nothing is known
  int unjudged_todo = 0;  ///< whose signal, which comes before a job's time is up, was not tried
  std::string unjudged;   ///< why not; empty: it was tried, or there was no need to
};

/// Throws Error where the lab itself fails.
JobChecked check_job(const Project& project, const Course& course, const Step& step,
                     const JobCheckOptions& options);

}  // namespace checker
