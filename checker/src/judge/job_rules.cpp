#include "judge/job_rules.hpp"

#include <algorithm>
#include <cmath>

#include "judge/job_processes.hpp"
#include "judge/job_rendezvous.hpp"
#include "judge/job_signal.hpp"
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
      symptoms_.push_back({.id = "job_refused",
                           .evidence = {{"sbatch_said", {{"words", job_.refused}}}},
                           .blame = {is_about_nodes() ? "job_refused.nodes" : "job_refused"}});
      return symptoms_;
    }
    if (is_never_started()) return never_started();
    gpus();
    add(judge_rendezvous(context_));
    if (symptoms_.empty()) add(judge_processes(context_));  // else it is expected
    nodes();
    if (symptoms_.empty()) end();
    if (symptoms_.empty()) losses();
    if (symptoms_.empty()) add(judge_signal(context_));
    return std::move(symptoms_);
  }

 private:
  void add(const std::string& id, std::vector<EvidenceLine> evidence) {
    symptoms_.push_back({.id = id, .evidence = std::move(evidence)});
  }

  void add(std::optional<Symptom> symptom) {
    if (symptom) symptoms_.push_back(std::move(*symptom));
  }

  // In Slurm's own words.
  bool is_about_nodes() const {
    return job_.refused.find("node count") != std::string::npos ||
           job_.refused.find("Node count") != std::string::npos;
  }

  // Slurm took the job, and waits for nodes that the cluster does not have.
  bool is_never_started() const {
    const bool too_much = job_.reason == "PartitionConfig" || job_.reason == "PartitionNodeLimit" ||
                          job_.reason == "BadConstraints";
    return job_.out_of_time && job_.hosts.empty() && any_starts().empty() && too_much;
  }

  Symptoms never_started() const {
    const bool nodes = std::cmp_greater(job_.nodes_asked, context_.nodes);
    return {{.id = "job_never_starts",
             .values = {{"asked", job_.nodes_asked}, {"nodes", context_.nodes}},
             .evidence = {{"waits", {{"reason", job_.reason}}}},
             .variant = nodes ? "nodes" : "",
             .blame = {nodes ? "job_refused.nodes" : "job_refused"}}};
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

  void nodes() {
    if (job_.hosts.size() == 2 || job_.hosts.empty()) return;  // of none nobody knows
    // The unchanged script asks for one.
    symptoms_.push_back(
        {.id = "not_two_nodes",
         .values = {{"nodes", job_.hosts.size()}},
         .evidence = {{"nodes", {{"hosts", join(job_.hosts, ", ")}}}},
         .kind = job_.hosts.size() == 1 ? FindingKind::not_started : FindingKind::mistake});
  }

  void end() {
    if (job_.restarts > 0) return add("queued_again_after_its_end", last_words_of(job_));
    if (job_.completed()) return;
    add(job_.out_of_time ? "job_stands_still" : "job_fails", last_words_of(job_));
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

  // CUDA sees all GPUs where nothing is said, and none behind a number that no GPU has.
  std::set<std::string> visible_to(const StartSeen& start) const {
    if (start.environment.contains("CUDA_VISIBLE_DEVICES")) {
      std::set<std::string> seen;
      for (const auto& entry : split(start.variable("CUDA_VISIBLE_DEVICES"), ',')) {
        const bool numbered = entry.find_first_not_of("0123456789") == std::string::npos;
        const auto gpus = static_cast<int>(context_.gpus_per_node);
        if (numbered && whole_number(entry, gpus) >= gpus) break;
        seen.insert(entry);
      }
      return seen;
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
