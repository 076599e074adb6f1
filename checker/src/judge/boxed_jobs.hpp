#pragma once
/// Job scripts that nobody trusts: the whole lab is shut in with them. In there it keeps the rights
/// that it needs to be a cluster; jobs are somebody who has none.
#include <vector>

#include "jobs/job.hpp"
#include "jobs/job_site.hpp"
#include "judge/job_check.hpp"

namespace checker {

/// As run_jobs(), in the box. Throws Error if the lab fails.
std::vector<JobEnd> run_jobs_boxed(const Project& project, const std::vector<JobSite>& sites,
                                   const JobCheckOptions& options, const Box& box);

/// For the program in the box: what run_jobs() comes to, as a line of JSON.
std::string to_json(const std::vector<JobEnd>& ends);

}  // namespace checker
