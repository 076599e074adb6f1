#include "judge/job_rules.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "support/text.hpp"

namespace checker {

namespace {

using Starts = std::vector<StartSeen>;

std::map<std::string, std::vector<const StartSeen*>> by_host(const Starts& starts) {
  std::map<std::string, std::vector<const StartSeen*>> hosts;
  for (const auto& start : starts) hosts[start.host].push_back(&start);
  return hosts;
}

int whole_number(const std::string& text, int otherwise) {
  int number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// Where a process was told to meet the others.
struct Meeting {
  std::string host, address, port;
};

Meeting meeting_of(const StartSeen& start) {
  const auto endpoint = start.option("rdzv-endpoint");
  const auto colon = endpoint.rfind(':');
  if (colon != std::string::npos) {
    return {start.host, endpoint.substr(0, colon), endpoint.substr(colon + 1)};
  }
  const auto told = [&](const char* option, const char* variable) {
    const auto value = start.option(option);
    return value.empty() ? start.variable(variable) : value;
  };
  return {start.host, told("master-addr", "MASTER_ADDR"), told("master-port", "MASTER_PORT")};
}

// torchrun tells its ranks another address, so what counts is what torchrun was told.
std::vector<Meeting> meetings_of(const JobSeen& job) {
  std::vector<Meeting> meetings;
  for (const auto& start : job.launchers.empty() ? job.trainers : job.launchers) {
    meetings.push_back(meeting_of(start));
  }
  return meetings;
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
    meeting();
    if (findings_.empty()) processes();  // else it is no wonder
    nodes();
    if (findings_.empty()) end();
    if (findings_.empty()) losses();
    return std::move(findings_);
  }

 private:
  void add(std::string_view name, const std::string& id, const std::string& what,
           const std::string& why, std::vector<std::string> evidence) {
    int number = 0;
    for (const auto& [todo, about] : scene_.ladder.todos) {
      if (std::ranges::find(about.features, name) != about.features.end()) number = todo;
    }
    findings_.push_back({number, id, what, why, std::move(evidence), ""});
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

  // TODO 15: the same place for all, the first node, a port of the job's own.
  void meeting() {
    const auto meetings = meetings_of(job_);
    if (meetings.empty()) return;
    const auto& first = meetings.front();
    const auto say = [&](const std::string& id, const std::string& what, const std::string& why) {
      std::vector<std::string> evidence;
      for (const auto& meeting : meetings) {
        const auto line = "on " + meeting.host + ": " +
                          (meeting.address.empty() ? "no address" : meeting.address) + ", " +
                          (meeting.port.empty() ? "no port" : "port " + meeting.port);
        if (std::ranges::find(evidence, line) == evidence.end()) evidence.push_back(line);
      }
      add(feature::master, id, what, why, evidence);
    };
    const bool set = std::ranges::all_of(meetings, [](const Meeting& meeting) {
      return !meeting.address.empty() && !meeting.port.empty();
    });
    if (!set) {
      return say("master_not_set", "The ranks are not told where to meet.",
                 "Set MASTER_ADDR and MASTER_PORT and export both, before srun.");
    }
    const bool local = std::ranges::any_of(meetings, [](const Meeting& meeting) {
      return meeting.address == "localhost" || meeting.address.starts_with("127.") ||
             meeting.address == "::1";
    });
    if (local) {
      return say("master_is_localhost", "Every node is told to meet at itself.",
                 "localhost is another machine on every node: the first node's name is the same "
                 "for all.");
    }
    const auto differs = [&](std::string Meeting::*part) {
      return std::ranges::any_of(meetings,
                                 [&](const Meeting& m) { return m.*part != first.*part; });
    };
    if (differs(&Meeting::address)) {
      return say("masters_differ", "The nodes are told different places to meet.",
                 "Find the address once, in the batch script, and export it; what a node asks of "
                 "itself differs from node to node.");
    }
    if (!job_.hosts.empty() && first.address != job_.hosts.front()) {
      return say(
          "master_not_first_node", "The place to meet is not the first node of the job.",
          "`scontrol show hostnames \"$SLURM_JOB_NODELIST\"` lists the job's nodes; the first "
          "of them runs the batch script and rank 0.");
    }
    if (differs(&Meeting::port)) {
      return say("ports_differ", "The nodes are told different ports.",
                 "Make the port once, in the batch script, from what is the same on all nodes: the "
                 "job's number.");
    }
    const int port = whole_number(first.port, 0);
    if (port < 1024 || port > 65535) {
      return say("port_not_usable", "The port cannot be used.",
                 "Ports from 1024 to 65535 are everybody's.");
    }
    const auto others = meetings_of(scene_.other);
    if (!others.empty() && others.front().port == first.port) {
      say("port_of_every_job", "Another job of the same script gets the same port.",
          "Two jobs can share a node, and only one of them gets a port: make it from the job's "
          "number.");
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
    constexpr size_t kLines = 5;
    const size_t from = job_.output.size() > kLines ? job_.output.size() - kLines : 0;
    for (size_t i = from; i < job_.output.size(); ++i) {
      evidence.push_back("it said: " + job_.output[i].substr(0, 200));
    }
    add(feature::torchrun, job_.out_of_time ? "job_stands_still" : "job_fails",
        job_.out_of_time ? "The job does not come to its end." : "The job fails.",
        "Nothing else was found wrong: its own words may tell.", std::move(evidence));
  }

  void losses() {
    if (scene_.alone.empty()) return;
    const bool same = scene_.reported.size() == scene_.alone.size() &&
                      std::ranges::equal(scene_.reported, scene_.alone, [](double a, double b) {
                        return std::abs(a - b) <= kLossTolerance * std::abs(b);
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
      return entries_of(start.variable("CUDA_VISIBLE_DEVICES"));
    }
    std::set<std::string> all;
    for (size_t gpu = 0; gpu < scene_.gpus_per_node; ++gpu) all.insert(std::to_string(gpu));
    return all;
  }

  // "0,1,2": its parts.
  static std::set<std::string> entries_of(const std::string& list) {
    std::set<std::string> entries;
    for (size_t at = 0; at < list.size();) {
      const auto end = std::min(list.find(',', at), list.size());
      entries.insert(list.substr(at, end - at));
      at = end + 1;
    }
    return entries;
  }

  const JobScene& scene_;
  const JobSeen& job_;
  Findings findings_;
};

}  // namespace

Findings judge_job(const JobScene& scene) { return JobRules(scene).judge(); }

}  // namespace checker
