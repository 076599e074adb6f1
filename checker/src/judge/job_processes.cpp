#include "judge/job_processes.hpp"

#include <algorithm>
#include <set>

#include "support/text.hpp"

namespace checker {

namespace {

// What a launcher says about hosting the rendezvous: --rdzv-conf=is_host=1,timeout=60.
std::optional<bool> hosts_rendezvous(const TorchrunCall& call) {
  for (const auto& setting : split(call.option("rdzv-conf"), ',')) {
    if (!setting.starts_with("is_host=")) continue;
    const auto value = setting.substr(setting.find('=') + 1);
    return value == "1" || value == "true" || value == "True";
  }
  return std::nullopt;
}

EvidenceLine option_of(const StartSeen& launcher, const std::string& option) {
  const auto call = launcher.call();
  return {call.has(option) ? "launcher_option" : "launcher_lacks_option",
          {{"host", launcher.host}, {"option", option}, {"value", call.option(option)}}};
}

class Processes {
 public:
  explicit Processes(const JobContext& context) : context_(context), job_(context.job) {}

  std::optional<Symptom> judge() {
    if (job_.launchers.empty() && job_.trainers.empty()) {
      return Symptom{.id = "nothing_started", .evidence = last_words_of(job_)};
    }
    if (std::ranges::any_of(job_.hosts,
                            [&](const auto& host) { return count(job_.launchers, host) > 1; })) {
      return Symptom{.id = "torchrun_once_per_task", .evidence = started()};
    }
    for (const auto rule :
         {&Processes::program, &Processes::nodes_of_launchers, &Processes::agreement,
          &Processes::ranks_of_nodes, &Processes::one_world, &Processes::options_of_ranks}) {
      if (auto symptom = (this->*rule)()) return symptom;
    }
    return std::nullopt;
  }

 private:
  static std::ptrdiff_t count(const std::vector<StartSeen>& starts, const std::string& host) {
    return std::ranges::count(starts, host, &StartSeen::host);
  }

  std::vector<EvidenceLine> started() const {
    std::vector<EvidenceLine> evidence;
    for (const auto& host : job_.hosts) {
      evidence.push_back({"started",
                          {{"host", host},
                           {"times", count(job_.launchers, host)},
                           {"ranks", count(job_.trainers, host)}}});
    }
    return evidence;
  }

  // Where no rank ran, the job's own words may tell why.
  std::vector<EvidenceLine> started_and_said() const {
    auto evidence = started();
    if (!job_.trainers.empty()) return evidence;
    std::ranges::move(calls(), std::back_inserter(evidence));
    std::ranges::move(last_words_of(job_), std::back_inserter(evidence));
    return evidence;
  }

  std::vector<EvidenceLine> calls() const {
    std::vector<EvidenceLine> evidence;
    for (const auto& launcher : job_.launchers) {
      auto words = launcher.arguments;
      std::ranges::replace(words, std::string(), std::string("''"));  // else nobody sees it
      evidence.push_back({"launcher_call", {{"host", launcher.host}, {"words", join(words, " ")}}});
    }
    return evidence;
  }

  // A torchrun that has nothing to start, or not as what it is.
  std::optional<Symptom> program() {
    if (!job_.trainers.empty()) return std::nullopt;
    for (const auto& launcher : job_.launchers) {
      const auto call = launcher.call();
      if (!call.unknown.empty()) {
        return Symptom{.id = "torchrun_without_program",
                       .values = {{"option", call.unknown}},
                       .evidence = calls(),
                       .variant = "option_first"};
      }
      if (!call.has_program || call.program.empty()) {
        return Symptom{.id = "torchrun_without_program",
                       .evidence = calls(),
                       .variant = call.has_program ? "empty" : ""};
      }
      for (const auto& [option, value] : call.options) {
        if (value.empty() && is_needed(option)) {
          return Symptom{
              .id = "torchrun_option_empty", .values = {{"option", option}}, .evidence = calls()};
        }
      }
      if (!call.has("no-python") && !call.program.ends_with(".py")) {
        return Symptom{.id = "program_run_by_python", .evidence = calls()};
      }
    }
    return std::nullopt;
  }

  // Flags have no value either.
  static bool is_needed(const std::string& option) {
    static const std::set<std::string> needed{"nnodes",        "nproc-per-node", "rdzv-backend",
                                              "rdzv-endpoint", "rdzv-id",        "rdzv-conf",
                                              "node-rank",     "master-addr",    "master-port"};
    return needed.contains(option);
  }

  std::optional<Symptom> nodes_of_launchers() {
    if (job_.launchers.empty()) return std::nullopt;
    for (const auto& host : job_.hosts) {
      if (count(job_.launchers, host) > 0 || count(job_.trainers, host) > 0) continue;
      return Symptom{.id = "torchrun_on_some_nodes", .evidence = started_and_said()};
    }
    return std::nullopt;
  }

  std::optional<Symptom> agreement() {
    if (job_.launchers.size() < 2) return std::nullopt;
    for (const auto& [option, id] :
         {std::pair{"rdzv-id", "rdzv_ids_differ"}, {"nnodes", "nnodes_differ"}}) {
      if (values_of(option).size() > 1) return Symptom{.id = id, .evidence = all_give(option)};
    }
    const bool is_static = std::ranges::all_of(job_.launchers, [](const StartSeen& launcher) {
      const auto backend = launcher.call().option("rdzv-backend");
      return backend.empty() || backend == "static";
    });
    return is_static ? static_rendezvous() : host_of_rendezvous();
  }

  // torchrun gets over two hosts as long as nobody else has the port on the second of them.
  std::optional<Symptom> host_of_rendezvous() const {
    size_t hosts = 0, others = 0;
    for (const auto& launcher : job_.launchers) {
      const auto says = hosts_rendezvous(launcher.call());
      (says.value_or(false) ? hosts : others) += says ? 1 : 0;
    }
    if (hosts > 1) {
      return Symptom{.id = "rendezvous_with_two_hosts", .evidence = all_give("rdzv-conf")};
    }
    if (others == job_.launchers.size() && !whole_world()) {
      return Symptom{.id = "rendezvous_without_host", .evidence = all_give("rdzv-conf")};
    }
    return std::nullopt;
  }

  std::optional<Symptom> static_rendezvous() const {
    if (is_standalone() || whole_world() || values_of("nnodes") == std::set<std::string>{"1"}) {
      return std::nullopt;
    }
    if (values_of("node-rank").size() < job_.launchers.size()) {
      auto evidence = all_give("node-rank");
      std::ranges::move(all_give("rdzv-backend"), std::back_inserter(evidence));
      std::ranges::move(started(), std::back_inserter(evidence));
      return Symptom{.id = "node_ranks_equal", .evidence = std::move(evidence)};
    }
    return std::nullopt;
  }

  bool is_standalone() const {
    return std::ranges::any_of(job_.launchers, [](const StartSeen& launcher) {
      return launcher.call().has("standalone");
    });
  }

  // They were told to start the right number, and none started a single one.
  bool nodes_wait_for_each_other() const {
    const auto right = std::to_string(context_.gpus_per_node);
    return job_.trainers.empty() && job_.launchers.size() > 1 && job_.out_of_time &&
           std::ranges::all_of(job_.launchers, [&](const StartSeen& launcher) {
             return launcher.call().option("nproc-per-node") == right;
           });
  }

  std::set<std::string> values_of(const std::string& option) const {
    std::set<std::string> values;
    for (const auto& launcher : job_.launchers) values.insert(launcher.call().option(option));
    return values;
  }

  std::vector<EvidenceLine> all_give(const std::string& option) const {
    std::vector<EvidenceLine> evidence;
    for (const auto& launcher : job_.launchers) evidence.push_back(option_of(launcher, option));
    return evidence;
  }

  std::optional<Symptom> ranks_of_nodes() {
    const bool right = std::ranges::all_of(job_.hosts, [&](const auto& host) {
      return std::cmp_equal(count(job_.trainers, host), context_.gpus_per_node);
    });
    if (right) return std::nullopt;
    if (nodes_wait_for_each_other()) {
      return Symptom{.id = "nodes_never_meet",
                     .evidence = started_and_said(),
                     .variant = is_standalone() ? "standalone" : ""};
    }
    const auto has_none = [&](const auto& host) { return count(job_.trainers, host) == 0; };
    const bool on_some = !job_.trainers.empty() && std::ranges::any_of(job_.hosts, has_none);
    return Symptom{.id = "not_a_rank_per_gpu",
                   .evidence = started_and_said(),
                   .variant = job_.launchers.empty() ? "by_slurm"
                              : on_some              ? "on_some_nodes"
                                                     : ""};
  }

  struct Place {
    std::string host;
    int rank, world;
  };

  static Place place_of(const StartSeen& start) {
    const auto number = [&](const char* by_torchrun, const char* by_slurm) {
      const auto told = start.variable(by_torchrun);
      return whole_number(told.empty() ? start.variable(by_slurm) : told, -1);
    };
    return {start.host, number("RANK", "SLURM_PROCID"), number("WORLD_SIZE", "SLURM_NTASKS")};
  }

  bool whole_world() const {
    std::set<int> ranks;
    return job_.trainers.size() == job_.hosts.size() * context_.gpus_per_node &&
           std::ranges::all_of(job_.trainers, [&](const StartSeen& start) {
             const auto place = place_of(start);
             return std::cmp_equal(place.world, job_.trainers.size()) &&
                    ranks.insert(place.rank).second;
           });
  }

  std::optional<Symptom> one_world() {
    if (whole_world()) return std::nullopt;
    std::vector<Place> places;
    for (const auto& start : job_.trainers) places.push_back(place_of(start));
    std::ranges::sort(places, {},
                      [](const Place& place) { return std::pair(place.host, place.rank); });
    Symptom symptom{.id = "several_worlds", .variant = is_standalone() ? "standalone" : ""};
    for (const auto& [host, rank, world] : places) {
      symptom.evidence.push_back(
          {"rank_of_world", {{"host", host}, {"rank", rank}, {"size", world}}});
    }
    std::ranges::move(started(), std::back_inserter(symptom.evidence));
    return symptom;
  }

  // Without --resume a job that was queued again trains from the first epoch.
  std::optional<Symptom> options_of_ranks() {
    for (const auto& start : job_.trainers) {
      if (std::ranges::find(start.arguments, "--resume") != start.arguments.end()) continue;
      const auto words = join(start.arguments, " ");
      return Symptom{.id = "ranks_without_their_options",
                     .evidence = {{words.empty() ? "rank_got_nothing" : "rank_got",
                                   {{"host", start.host}, {"words", words}}}}};
    }
    return std::nullopt;
  }

  const JobContext& context_;
  const JobSeen& job_;
};

}  // namespace

std::optional<Symptom> judge_processes(const JobContext& context) {
  return Processes(context).judge();
}

std::vector<EvidenceLine> last_words_of(const JobSeen& job) {
  std::vector<EvidenceLine> evidence = {{job.reason.empty() ? "slurm_says" : "slurm_says_why",
                                         {{"state", job.state}, {"reason", job.reason}}}};
  constexpr size_t kLastLines = 5;
  const size_t first = job.output.size() > kLastLines ? job.output.size() - kLastLines : 0;
  for (size_t i = first; i < job.output.size(); ++i) {
    evidence.push_back({"it_said_small", {{"words", job.output[i].substr(0, 200)}}});
  }
  return evidence;
}

}  // namespace checker
