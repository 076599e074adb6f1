#pragma once
#include <chrono>

#include "jobs/job_site.hpp"
#include "lab/lab.hpp"

namespace checker {

/// Submits the site's script in a lab and waits for the job's end; one that gets nowhere for so
/// long is cancelled. Throws Error if the lab fails.
JobSeen run_job(const Lab& lab, const JobSite& site, std::chrono::seconds patience);

}  // namespace checker
