#include "jobs/run_job.hpp"

#include <thread>

#include "jobs/record.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

JobSeen run_job(const Lab& lab, const JobSite& site, std::chrono::seconds patience) {
  JobSeen job;
  const auto submitted =
      lab.run({"sbatch", "--parsable", site.script().string()}, {}, site.folder(), 30s);
  if (submitted.status != 0) {
    job.refused = trim(submitted.output);
    return job;
  }
  const std::string number(trim(submitted.output));
  const auto show = [&] { return lab.run({"scontrol", "show", "job", number}, {}, "/", 30s); };
  auto deadline = Clock::now() + patience;
  uint64_t seen = 0;
  JobRecord record;
  while (true) {
    const auto said = show();
    if (said.status != 0) throw Error("The lab's Slurm does not know its job: " + said.output);
    record = parse_job_record(said.output);
    if (record.is_over()) break;
    if (const auto now = site.progress(); now != seen && !job.out_of_time) {
      seen = now;
      deadline = Clock::now() + patience;
    }
    if (Clock::now() >= deadline && !job.out_of_time) {
      job.out_of_time = true;
      job.reason = record.reason;
      lab.run({"scancel", "--full", number}, {}, "/", 30s);
    }
    if (Clock::now() >= deadline + 30s) throw Error("The lab's Slurm does not end its job.");
    std::this_thread::sleep_for(100ms);
  }
  job.state = record.state;
  if (!record.nodes.empty()) {
    const auto names = lab.run({"scontrol", "show", "hostnames", record.nodes}, {}, "/", 30s);
    for (const auto& name : split_lines(names.output)) job.hosts.emplace_back(name);
  }
  site.read(job);
  return job;
}

}  // namespace checker
