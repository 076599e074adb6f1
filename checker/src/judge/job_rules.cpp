#include "judge/job_rules.hpp"

#include <algorithm>
#include <cmath>

#include "judge/job_rendezvous.hpp"
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
  explicit JobRules(const JobContext& context) : context_(context), job_(context.job) {}

  Symptoms judge() {
    if (!job_.refused.empty()) {
      add("job_refused", {{"sbatch_said", {{"words", job_.refused}}}});
      return symptoms_;
    }
    gpus();
    if (auto symptom = judge_rendezvous(context_)) symptoms_.push_back(std::move(*symptom));
    if (symptoms_.empty()) processes();  // else it is no wonder
    nodes();
    if (symptoms_.empty()) end();
    if (symptoms_.empty()) losses();
    return std::move(symptoms_);
  }

 private:
  void add(const std::string& id, std::vector<EvidenceLine> evidence) {
    symptoms_.push_back({.id = id, .evidence = std::move(evidence)});
  }

  // Allotted by Slurm, and to be seen by the programs.
  void gpus() {
    for (const auto& [host, starts] : by_host(any_starts())) {
      const auto allotted =
          static_cast<size_t>(whole_number(starts.front()->variable("SLURM_GPUS_ON_NODE"), 0));
      std::set<std::string> visible;
      for (const auto* start : starts) visible.merge(visible_to(*start));
      const std::vector<EvidenceLine> evidence = {
          {"gpus_of_node",
           {{"host", host},
            {"allotted", allotted},
            {"visible", visible.size()},
            {"devices", starts.front()->variable("CUDA_VISIBLE_DEVICES")}}}};
      if (allotted != context_.gpus_per_node) return add("gpus_not_asked_for", evidence);
      if (visible.size() != context_.gpus_per_node) return add("gpus_not_visible", evidence);
    }
  }

  // One torchrun a node, one rank a GPU, one world.
  void processes() {
    std::vector<EvidenceLine> evidence;
    for (const auto& host : job_.hosts) {
      const auto count = [&](const Starts& starts) {
        return std::ranges::count(starts, host, &StartSeen::host);
      };
      evidence.push_back(
          {"started",
           {{"host", host}, {"times", count(job_.launchers)}, {"ranks", count(job_.trainers)}}});
    }
    for (const auto& [host, launchers] : by_host(job_.launchers)) {
      if (launchers.size() > 1) return add("torchrun_once_per_task", evidence);
    }
    if (job_.launchers.size() > 1 && launchers_disagree()) return;
    for (const auto& host : job_.hosts) {
      const auto ranks = std::ranges::count(job_.trainers, host, &StartSeen::host);
      if (static_cast<size_t>(ranks) == context_.gpus_per_node) continue;
      return add("not_a_rank_per_gpu", evidence);
    }
    one_world(evidence);
  }

  bool launchers_disagree() {
    for (const auto& [option, id] :
         {std::pair{"rdzv-id", "rdzv_ids_differ"}, {"nnodes", "nnodes_differ"}}) {
      std::vector<EvidenceLine> evidence;
      bool differ = false;
      for (const auto& launcher : job_.launchers) {
        const auto value = launcher.option(option);
        differ = differ || value != job_.launchers.front().option(option);
        evidence.push_back(
            {"launcher_option", {{"host", launcher.host}, {"option", option}, {"value", value}}});
      }
      if (!differ) continue;
      add(id, evidence);
      return true;
    }
    return false;
  }

  void one_world(std::vector<EvidenceLine> evidence) {
    std::set<int> ranks;
    bool whole = true;
    std::vector<EvidenceLine> places;
    for (const auto& start : job_.trainers) {
      const auto number = [&](const char* by_torchrun, const char* by_slurm) {
        const auto told = start.variable(by_torchrun);
        return whole_number(told.empty() ? start.variable(by_slurm) : told, -1);
      };
      const int rank = number("RANK", "SLURM_PROCID"), world = number("WORLD_SIZE", "SLURM_NTASKS");
      whole = whole && world == static_cast<int>(job_.trainers.size());
      whole = ranks.insert(rank).second && whole;
      places.push_back({"rank_of_world", {{"host", start.host}, {"rank", rank}, {"size", world}}});
    }
    if (whole) return;
    std::ranges::sort(places, {}, [](const EvidenceLine& seen) {
      return seen.values.at("host").text + " " + seen.values.at("rank").text;
    });
    places.insert(places.end(), evidence.begin(), evidence.end());
    add("several_worlds", std::move(places));
  }

  void nodes() {
    if (job_.hosts.size() == 2) return;
    symptoms_.push_back({.id = "not_two_nodes",
                         .values = {{"nodes", job_.hosts.size()}},
                         .evidence = {{"nodes", {{"hosts", join(job_.hosts, ", ")}}}}});
  }

  void end() {
    if (job_.completed()) return;
    std::vector<EvidenceLine> evidence = {{job_.reason.empty() ? "slurm_says" : "slurm_says_why",
                                           {{"state", job_.state}, {"reason", job_.reason}}}};
    constexpr size_t kLastLines = 5;
    const size_t first = job_.output.size() > kLastLines ? job_.output.size() - kLastLines : 0;
    for (size_t i = first; i < job_.output.size(); ++i) {
      evidence.push_back({"it_said_small", {{"words", job_.output[i].substr(0, 200)}}});
    }
    add(job_.out_of_time ? "job_stands_still" : "job_fails", std::move(evidence));
  }

  void losses() {
    if (context_.alone.empty()) return;
    const bool same =
        context_.reported.size() == context_.alone.size() &&
        std::ranges::equal(context_.reported, context_.alone, [this](double a, double b) {
          return std::abs(a - b) <= context_.loss_tolerance * std::abs(b);
        });
    if (same) return;
    EvidenceLine of_job{"last_of_job", {}};
    if (context_.reported.empty()) {
      of_job.name = "none_of_job";
    } else {
      of_job.values["loss"] = digits(context_.reported.back());
    }
    add("loss_not_that_of_one_rank",
        {of_job, {"last_of_one_rank", {{"loss", digits(context_.alone.back())}}}});
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
    for (size_t gpu = 0; gpu < context_.gpus_per_node; ++gpu) all.insert(std::to_string(gpu));
    return all;
  }

  const JobContext& context_;
  const JobSeen& job_;
  Symptoms symptoms_;
};

}  // namespace

Symptoms judge_job(const JobContext& context) { return JobRules(context).judge(); }

}  // namespace checker
