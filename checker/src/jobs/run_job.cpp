#include "jobs/run_job.hpp"

#include <thread>

#include "jobs/record.hpp"
#include "jobs/signalled_job.hpp"
#include "lab/lab.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

// As long as those of a cluster that has seen many jobs, where a port that is made from it may come
// out too large, or, from its last digits alone, too small.
constexpr size_t kFirstJob = 1180410;
constexpr auto kPatience = 20s;  // torchrun takes some seconds to be there

LabOptions cluster() {
  LabOptions options;
  options.sets_visible_gpus = false;  // where Slurm sets the variable, nobody sees what scripts say
  options.first_job = kFirstJob;
  options.nodes = 3;  // one more than asked for
  return options;
}

// Until the job is over or back in the queue; false: it got nowhere, and we ended it.
bool await(const Lab& lab, const JobSite& site, const std::string& number, JobRecord& record) {
  bool in_time = true;
  auto deadline = Clock::now() + kPatience;
  uint64_t seen = 0;
  while (true) {
    const auto said = lab.run({"scontrol", "show", "job", number}, {}, "/", 30s);
    if (said.status != 0) throw Error("The lab's Slurm does not know its job: " + said.output);
    const auto before = record;
    record = parse_job_record(said.output);
    if (record.restarts > 0) record.nodes = before.nodes;  // in the queue it has none
    if (!in_time) record.reason = before.reason;
    if (record.is_over() || record.restarts > 0) return in_time;
    if (const auto now = site.progress(); now != seen && in_time) {
      seen = now;
      deadline = Clock::now() + kPatience;
    }
    if (Clock::now() >= deadline && in_time) {
      in_time = false;
      lab.run({"scancel", "--full", number}, {}, "/", 30s);
    }
    if (Clock::now() >= deadline + 30s) throw Error("The lab's Slurm does not finish its job.");
    std::this_thread::sleep_for(100ms);
  }
}

// ranks: of a job that gets a signal, how many are to hear of it.
JobEnd run_job(const Lab& lab, const JobSite& site, std::vector<std::string> submit, size_t ranks) {
  JobEnd job;
  submit.insert(submit.end(), {"sbatch", "--parsable", site.script().string()});
  const auto submitted = lab.run(submit, {}, site.folder(), 30s);
  if (submitted.status != 0) {
    job.refused = trim(submitted.output);
    return job;
  }
  const std::string number(trim(submitted.output));
  if (site.gets_signal()) {
    signal_job(lab, site, number, ranks, job);
    return job;
  }
  JobRecord record;
  job.out_of_time = !await(lab, site, number, record);
  job.state = record.state;
  job.nodes_asked = record.nodes_asked;
  job.restarts = record.restarts;
  if (job.out_of_time) job.reason = record.reason;
  if (!record.nodes.empty()) {
    const auto names = lab.run({"scontrol", "show", "hostnames", record.nodes}, {}, "/", 30s);
    for (const auto& name : split_lines(names.output)) job.hosts.emplace_back(name);
  }
  return job;
}

}  // namespace

std::vector<JobEnd> run_jobs(const std::vector<JobSite>& sites,
                             const std::vector<std::string>& as) {
  const auto lab = Lab::start(cluster());
  std::vector<JobEnd> ends;
  size_t ranks = 0;
  for (const auto& site : sites) {
    ends.push_back(run_job(lab, site, as, ranks));
    if (!ends.back().completed()) break;
    ranks = site.ranks();
  }
  return ends;
}

size_t job_nodes() { return cluster().nodes; }

size_t job_gpus_per_node() { return cluster().gpus_per_node; }

}  // namespace checker
