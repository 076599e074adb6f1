#include "judge/job_meeting.hpp"

#include <algorithm>

#include "support/text.hpp"

namespace checker {

namespace {

// Where a process was told to meet the others.
struct Meeting {
  std::string host, address, port;

  std::string describe() const {
    return "on " + host + ": " + (address.empty() ? "no address" : address) + ", " +
           (port.empty() ? "no port" : "port " + port);
  }
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

bool is_local(const Meeting& meeting) {
  return meeting.address == "localhost" || meeting.address.starts_with("127.") ||
         meeting.address == "::1";
}

std::vector<std::string> evidence_of(const std::vector<Meeting>& meetings) {
  std::vector<std::string> evidence;
  for (const auto& meeting : meetings) {
    const auto line = meeting.describe();
    if (std::ranges::find(evidence, line) == evidence.end()) evidence.push_back(line);
  }
  return evidence;
}

// What is wrong with where they meet, whatever other jobs do.
struct Wrong {
  const char *id, *what, *why;
};

std::optional<Wrong> wrong_with(const std::vector<Meeting>& meetings, const JobSeen& job) {
  const auto& first = meetings.front();
  const auto any = [&](auto condition) { return std::ranges::any_of(meetings, condition); };
  const auto differs = [&](std::string Meeting::*part) {
    return any([&](const Meeting& meeting) { return meeting.*part != first.*part; });
  };
  if (any([](const Meeting& m) { return m.address.empty() || m.port.empty(); })) {
    return Wrong{"master_not_set", "The ranks are not told where to meet.",
                 "Set MASTER_ADDR and MASTER_PORT and export both, before srun."};
  }
  if (any(is_local)) {
    return Wrong{"master_is_localhost", "Every node is told to meet at itself.",
                 "localhost is another machine on every node: the first node's name is the same "
                 "for all."};
  }
  if (differs(&Meeting::address)) {
    return Wrong{"masters_differ", "The nodes are told different places to meet.",
                 "Find the address once, in the batch script, and export it; what a node asks of "
                 "itself differs from node to node."};
  }
  if (!job.hosts.empty() && first.address != job.hosts.front()) {
    return Wrong{"master_not_first_node", "The place to meet is not the first node of the job.",
                 "`scontrol show hostnames \"$SLURM_JOB_NODELIST\"` lists the job's nodes; the "
                 "first of them runs the batch script and rank 0."};
  }
  if (differs(&Meeting::port)) {
    return Wrong{"ports_differ", "The nodes are told different ports.",
                 "Make the port once, in the batch script, from what is the same on all nodes: the "
                 "job's number."};
  }
  const int port = whole_number(first.port, 0);
  if (port < 1024 || port > 65535) {
    return Wrong{"port_not_usable", "The port cannot be used.",
                 "Ports from 1024 to 65535 are everybody's."};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Finding> judge_meeting(const JobScene& scene) {
  const auto meetings = meetings_of(scene.job);
  if (meetings.empty()) return std::nullopt;
  auto wrong = wrong_with(meetings, scene.job);
  const auto others = meetings_of(scene.other);
  if (!wrong && !others.empty() && others.front().port == meetings.front().port) {
    wrong = {"port_of_every_job", "Another job of the same script gets the same port.",
             "Two jobs can share a node, and only one of them gets a port: make it from the job's "
             "number."};
  }
  if (!wrong) return std::nullopt;
  return Finding{scene.course.todo_of(feature::master),
                 wrong->id,
                 wrong->what,
                 wrong->why,
                 evidence_of(meetings),
                 ""};
}

}  // namespace checker
