// What tries job scripts in grading's box: nothing else is in sight of it.
#include "jobs/run_job.hpp"

#include <algorithm>
#include <cstdio>

#include "judge/boxed_jobs.hpp"
#include "support/error.hpp"
#include "verbs/verbs.hpp"

namespace checker {

int run_jobs(const Project& /*project*/, const Arguments& arguments) {
  const auto end = std::ranges::find(arguments, "--");
  std::vector<JobSite> sites;
  for (auto word = arguments.begin(); word != end; word += 2) {
    if (std::next(word) == end) throw UsageError("expected FOLDER SCRIPT ... -- COMMAND");
    sites.emplace_back(*word, *std::next(word));
  }
  const Arguments as(end == arguments.end() ? end : std::next(end), arguments.end());
  std::puts(to_json(run_jobs(sites, as)).c_str());
  return 0;
}

}  // namespace checker
