#pragma once
#include <string>
#include <vector>

#include "jobs/job.hpp"
#include "jobs/job_site.hpp"

namespace checker {

/// Starts a lab, submits the sites' scripts one after the other and waits for each job's end; one
/// that gets nowhere for a while is cancelled, and after one that did not complete no more are
/// submitted. One that gets a signal gets it when as many ranks wait as the job before had. as:
/// what stands before sbatch, to submit as somebody else. Throws Error if the lab fails.
std::vector<JobEnd> run_jobs(const std::vector<JobSite>& sites,
                             const std::vector<std::string>& as = {});

/// GPUs of a node of that lab.
size_t job_gpus_per_node();

/// How many nodes there are for jobs to run on.
size_t job_nodes();

}  // namespace checker
