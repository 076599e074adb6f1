#include "judge/job_check.hpp"

#include <algorithm>

#include "jobs/run_job.hpp"
#include "jobs/torchrun.hpp"
#include "judge/boxed_jobs.hpp"
#include "judge/experiment.hpp"
#include "judge/job_rules.hpp"
#include "judge/tell.hpp"
#include "lab/impossible.hpp"

namespace checker {

namespace {

std::vector<double> reported_by_first(const JobSeen& job) {
  for (const auto& start : job.trainers) {
    if (start.log.empty()) continue;
    RankSeen rank;
    rank.log = read_log(start.log);
    interpret(rank);
    const bool first = std::ranges::any_of(rank.groups, [](const GroupSeen& group) {
      return group.name == "world" && group.rank == 0;
    });
    if (first) return rank.reported;
  }
  return {};
}

// Jobs train on CPUs: the GPUs of the rehearsal's nodes are stand-ins.
std::vector<std::string> trainer_options(const JobCheckOptions& options) {
  auto arguments = options.plan.options;
  arguments.insert(arguments.end(), {"--device", "cpu"});
  return arguments;
}

// What one rank comes to with the global batch of so many.
std::vector<double> reported_alone(const JobCheckOptions& options, size_t ranks) {
  if (ranks == 0) return {};
  auto arguments = trainer_options(options);
  arguments.insert(arguments.end(),
                   {"--batch-size", std::to_string(ranks * options.plan.batch_size)});
  const auto runs = run_experiment({.program = options.trainer,
                                    .folder = options.folder / "alone",
                                    .options = arguments,
                                    .reads = {options.folder / kPlanFolder},
                                    .worlds = {{RankPlace{}}},
                                    .box = options.box});
  const auto& rank = runs.front().run.ranks.front();
  return rank.result.exit.success() ? rank.reported : std::vector<double>();
}

}  // namespace

std::optional<std::string> job_check_impossible(const Project& project) {
  if (const auto why = lab_impossible()) return why;
  const auto why = why_own_not_running(project);
  if (!why) return std::nullopt;
  return "torchrun does not start, and job scripts need it: " + *why +
         ". Fix: ./workbook prefetch installs what it needs.";
}

JobChecked check_job(const Project& project, const Course& course, const Step& step,
                     const JobCheckOptions& options) {
  // The second shows how another job is told to meet, and what becomes of it when its time is up.
  const std::vector<JobSite> sites{
      {project, step, options.folder / "job", options.script, options.trainer,
       trainer_options(options)},
      {project, step, options.folder / "other-job", options.script, options.trainer, {}}};
  const auto ends =
      options.box ? run_jobs_boxed(project, sites, options, *options.box) : run_jobs(sites);
  std::vector<JobSeen> jobs(sites.size());
  for (size_t i = 0; i < ends.size(); ++i) {
    static_cast<JobEnd&>(jobs[i]) = ends[i];
    if (ends[i].refused.empty()) sites[i].read(jobs[i]);
  }
  const auto& job = jobs.front();
  JobChecked checked;
  checked.cut_off = job.launchers.empty() && job.trainers.empty();
  checked.findings = tell(
      course, step,
      judge_job({.job = job,
                 .other = jobs.back(),
                 .gpus_per_node = job_gpus_per_node(),
                 .nodes = job_nodes(),
                 .reported = reported_by_first(job),
                 .loss_tolerance = options.plan.loss_tolerance,
                 .alone = options.plan.ranks_add_up ? reported_alone(options, job.trainers.size())
                                                    : std::vector<double>()}));
  if (jobs.back().after_signal == AfterSignal::not_ready) {
    checked.unjudged_todo = blamed(course, step, {"signal_not_passed_on"});
    checked.unjudged = "the signal before a job's time limit: it could not be sent";
  }
  return checked;
}

}  // namespace checker
