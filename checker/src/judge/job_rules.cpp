#include "judge/job_rules.hpp"

#include <algorithm>
#include <cmath>

#include "judge/job_meeting.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

using Starts = std::vector<StartSeen>;

std::map<std::string, std::vector<const StartSeen*>> by_host(const Starts& starts) {
  std::map<std::string, std::vector<const StartSeen*>> hosts;
  for (const auto& start : starts) hosts[start.host].push_back(&start);
  return hosts;
}

class JobRules {
 public:
  explicit JobRules(const JobScene& scene) : scene_(scene), job_(scene.job) {}

  Findings judge() {
    if (!job_.refused.empty()) {
      add(feature::gpus, "job_refused", "Slurm does not take the job.",
          "It asks for something that no node of the cluster has, or sbatch cannot read it.",
          {"sbatch said: " + job_.refused});
      return findings_;
    }
    gpus();
    if (auto finding = judge_meeting(scene_)) findings_.push_back(std::move(*finding));
    if (findings_.empty()) processes();  // else it is no wonder
    nodes();
    if (findings_.empty()) end();
    if (findings_.empty()) losses();
    return std::move(findings_);
  }

 private:
  void add(std::string_view name, const std::string& id, const std::string& what,
           const std::string& why, std::vector<std::string> evidence) {
    findings_.push_back({scene_.course.todo_of(name), id, what, why, std::move(evidence), ""});
  }

  // TODO 14: allotted by Slurm, and to be seen by the programs.
  void gpus() {
    for (const auto& [host, starts] : by_host(any_starts())) {
      const auto allotted =
          static_cast<size_t>(whole_number(starts.front()->variable("SLURM_GPUS_ON_NODE"), 0));
      std::set<std::string> visible;
      for (const auto* start : starts) visible.merge(visible_to(*start));
      const std::vector<std::string> evidence = {
          "on " + host + ": " + std::to_string(allotted) + " allotted (SLURM_GPUS_ON_NODE), " +
          std::to_string(visible.size()) + " visible (CUDA_VISIBLE_DEVICES=" +
          starts.front()->variable("CUDA_VISIBLE_DEVICES") + ")"};
      if (allotted != scene_.gpus_per_node) {
        return add(feature::gpus, "gpus_not_asked_for",
                   "The job does not get the four GPUs of a node.",
                   "--gres=gpu:4 asks for them; it counts per node, not per job.", evidence);
      }
      if (visible.size() != scene_.gpus_per_node) {
        return add(feature::gpus, "gpus_not_visible",
                   "The job has four GPUs per node, but its programs do not see them all.",
                   "CUDA_VISIBLE_DEVICES says which of the node's GPUs a program may use; their "
                   "numbers start at 0.",
                   evidence);
      }
    }
  }

  // TODO 16: one torchrun a node, one rank a GPU, one world.
  void processes() {
    std::vector<std::string> evidence;
    for (const auto& host : job_.hosts) {
      const auto count = [&](const Starts& starts) {
        return std::ranges::count(starts, host, &StartSeen::host);
      };
      evidence.push_back("on " + host + ": torchrun started " +
                         count_of(static_cast<size_t>(count(job_.launchers)), "time") + ", " +
                         count_of(static_cast<size_t>(count(job_.trainers)), "rank"));
    }
    for (const auto& [host, launchers] : by_host(job_.launchers)) {
      if (launchers.size() <= 1) continue;
      return add(feature::torchrun, "torchrun_once_per_task",
                 "torchrun is started several times on one node.",
                 "Once per node is enough: it starts the ranks itself. --ntasks-per-node=1 stays.",
                 evidence);
    }
    if (job_.launchers.size() > 1 && launchers_disagree()) return;
    for (const auto& host : job_.hosts) {
      const auto ranks = std::ranges::count(job_.trainers, host, &StartSeen::host);
      if (static_cast<size_t>(ranks) == scene_.gpus_per_node) continue;
      return add(feature::torchrun, "not_a_rank_per_gpu",
                 "There is not one rank for each GPU of a node.",
                 "torchrun --nproc-per-node starts that many ranks on its node.", evidence);
    }
    one_world(evidence);
  }

  bool launchers_disagree() {
    struct Same {
      const char *option, *id, *what, *why;
    };
    for (const auto& same :
         {Same{"rdzv-id", "rdzv_ids_differ", "The nodes give different rendezvous ids.",
               "Nodes with different ids never meet: the job's number is the same on all."},
          Same{"nnodes", "nnodes_differ", "The nodes give different numbers of nodes.",
               "--nnodes is that of the whole job, $SLURM_NNODES."}}) {
      std::vector<std::string> evidence;
      bool differ = false;
      for (const auto& launcher : job_.launchers) {
        const auto value = launcher.option(same.option);
        differ = differ || value != job_.launchers.front().option(same.option);
        evidence.push_back("on " + launcher.host + ": --" + same.option + "=" + value);
      }
      if (!differ) continue;
      add(feature::torchrun, same.id, same.what, same.why, evidence);
      return true;
    }
    return false;
  }

  void one_world(std::vector<std::string> evidence) {
    std::set<int> ranks;
    bool whole = true;
    for (const auto& start : job_.trainers) {
      const auto number = [&](const char* by_torchrun, const char* by_slurm) {
        const auto told = start.variable(by_torchrun);
        return whole_number(told.empty() ? start.variable(by_slurm) : told, -1);
      };
      const int rank = number("RANK", "SLURM_PROCID"), world = number("WORLD_SIZE", "SLURM_NTASKS");
      whole = whole && world == static_cast<int>(job_.trainers.size());
      whole = ranks.insert(rank).second && whole;
      evidence.push_back("on " + start.host + ": rank " + std::to_string(rank) + " of " +
                         std::to_string(world));
    }
    if (whole) return;
    std::ranges::sort(evidence);
    add(feature::torchrun, "several_worlds", "The ranks do not form one world.",
        "All nodes together are one job: --nnodes is $SLURM_NNODES, and the rendezvous is the same "
        "for all.",
        evidence);
  }

  void nodes() {
    if (job_.hosts.size() == 2) return;
    add(feature::nodes, "not_two_nodes",
        "The job has " + count_of(job_.hosts.size(), "node") + ", not two.",
        "--nodes=2 asks for two.", {"its nodes: " + join(job_.hosts, ", ")});
  }

  void end() {
    if (job_.completed()) return;
    std::vector<std::string> evidence = {"Slurm says: " + job_.state +
                                         (job_.reason.empty() ? "" : ", " + job_.reason)};
    constexpr size_t kLastLines = 5;
    const size_t first = job_.output.size() > kLastLines ? job_.output.size() - kLastLines : 0;
    for (size_t i = first; i < job_.output.size(); ++i) {
      evidence.push_back("it said: " + job_.output[i].substr(0, 200));
    }
    add(feature::torchrun, job_.out_of_time ? "job_stands_still" : "job_fails",
        job_.out_of_time ? "The job does not come to its end." : "The job fails.",
        "Nothing else was found wrong: its own words may tell.", std::move(evidence));
  }

  void losses() {
    if (scene_.alone.empty()) return;
    const bool same = scene_.reported.size() == scene_.alone.size() &&
                      std::ranges::equal(scene_.reported, scene_.alone, [this](double a, double b) {
                        return std::abs(a - b) <= scene_.loss_tolerance * std::abs(b);
                      });
    if (same) return;
    add(feature::torchrun, "loss_not_that_of_one_rank",
        "The job's losses are not those of one rank on the same global batch.",
        "More ranks share the same work: with the same global batch they come to the same losses.",
        {"last loss of the job: " +
             (scene_.reported.empty() ? "none" : digits(scene_.reported.back())),
         "last loss of one rank: " + digits(scene_.alone.back())});
  }

  const Starts& any_starts() const {
    return job_.trainers.empty() ? job_.launchers : job_.trainers;
  }

  // CUDA sees all GPUs where nothing is said.
  std::set<std::string> visible_to(const StartSeen& start) const {
    if (start.environment.contains("CUDA_VISIBLE_DEVICES")) {
      const auto entries = split(start.variable("CUDA_VISIBLE_DEVICES"), ',');
      return {entries.begin(), entries.end()};
    }
    std::set<std::string> all;
    for (size_t gpu = 0; gpu < scene_.gpus_per_node; ++gpu) all.insert(std::to_string(gpu));
    return all;
  }

  const JobScene& scene_;
  const JobSeen& job_;
  Findings findings_;
};

}  // namespace

Findings judge_job(const JobScene& scene) { return JobRules(scene).judge(); }

}  // namespace checker
