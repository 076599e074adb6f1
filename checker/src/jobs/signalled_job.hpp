#pragma once
/// Runs a job and sends it, while its ranks run, the signal that comes before the time limit.
#include <string>

#include "jobs/job.hpp"
#include "jobs/job_site.hpp"
#include "lab/lab.hpp"

namespace checker {

/// Signals the batch script, as --signal=B:USR1@N has Slurm do it, once all its ranks wait for
/// that, and sees what becomes of the job. end: gets how far it came. Throws Error if the lab
/// fails.
void signal_job(const Lab& lab, const JobSite& site, const std::string& number, size_t ranks,
                JobEnd& end);

}  // namespace checker
