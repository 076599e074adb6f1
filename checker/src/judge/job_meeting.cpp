#include "judge/job_meeting.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "support/text.hpp"

namespace checker {

namespace {

// Where a process was told to meet the others.
struct Meeting {
  std::string host, address, port;

  EvidenceLine seen() const {
    const char* name = address.empty() ? (port.empty() ? "told_nothing" : "told_no_address")
                       : port.empty()  ? "told_no_port"
                                       : "told";
    return {name, {{"host", host}, {"address", address}, {"port", port}}};
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

// One line for each node, also where several ranks of it say the same.
std::vector<EvidenceLine> evidence_of(const std::vector<Meeting>& meetings) {
  std::vector<EvidenceLine> evidence;
  std::set<std::tuple<std::string, std::string, std::string>> known;
  for (const auto& meeting : meetings) {
    if (known.emplace(meeting.host, meeting.address, meeting.port).second) {
      evidence.push_back(meeting.seen());
    }
  }
  return evidence;
}

// What is wrong with where they meet, whatever other jobs do; empty: nothing.
std::string wrong_with(const std::vector<Meeting>& meetings, const JobSeen& job) {
  const auto& first = meetings.front();
  const auto any = [&](auto condition) { return std::ranges::any_of(meetings, condition); };
  const auto differs = [&](std::string Meeting::*part) {
    return any([&](const Meeting& meeting) { return meeting.*part != first.*part; });
  };
  if (any([](const Meeting& m) { return m.address.empty() || m.port.empty(); })) {
    return "master_not_set";
  }
  if (any(is_local)) return "master_is_localhost";
  if (differs(&Meeting::address)) return "masters_differ";
  if (!job.hosts.empty() && first.address != job.hosts.front()) return "master_not_first_node";
  if (differs(&Meeting::port)) return "ports_differ";
  const int port = whole_number(first.port, 0);
  return port < 1024 || port > 65535 ? "port_not_usable" : "";
}

}  // namespace

std::optional<Symptom> judge_meeting(const JobScene& scene) {
  const auto meetings = meetings_of(scene.job);
  if (meetings.empty()) return std::nullopt;
  auto id = wrong_with(meetings, scene.job);
  const auto others = meetings_of(scene.other);
  if (id.empty() && !others.empty() && others.front().port == meetings.front().port) {
    id = "port_of_every_job";
  }
  if (id.empty()) return std::nullopt;
  return Symptom{.id = id, .evidence = evidence_of(meetings)};
}

}  // namespace checker
