#include "judge/job_rendezvous.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include "support/text.hpp"

namespace checker {

namespace {

// Where a process was told to meet the others.
struct Rendezvous {
  std::string host, address, port;

  EvidenceLine seen() const {
    const char* name = address.empty() ? (port.empty() ? "told_nothing" : "told_no_address")
                       : port.empty()  ? "told_no_port"
                                       : "told";
    return {name, {{"host", host}, {"address", address}, {"port", port}}};
  }
};

Rendezvous rendezvous_told_to(const StartSeen& start) {
  const auto call = start.call();
  const auto endpoint = call.option("rdzv-endpoint");
  const auto colon = endpoint.rfind(':');
  if (colon != std::string::npos) {
    return {start.host, endpoint.substr(0, colon), endpoint.substr(colon + 1)};
  }
  const auto told = [&](const char* option, const char* variable) {
    const auto value = call.option(option);
    return value.empty() ? start.variable(variable) : value;
  };
  return {start.host, told("master-addr", "MASTER_ADDR"), told("master-port", "MASTER_PORT")};
}

// torchrun tells its ranks another address, so what counts is what torchrun was told.
std::vector<Rendezvous> rendezvous_of(const JobSeen& job) {
  std::vector<Rendezvous> all;
  for (const auto& start : job.launchers.empty() ? job.trainers : job.launchers) {
    all.push_back(rendezvous_told_to(start));
  }
  return all;
}

bool is_local(const Rendezvous& rendezvous) {
  return rendezvous.address == "localhost" || rendezvous.address.starts_with("127.") ||
         rendezvous.address == "::1";
}

bool is_usable(const std::string& port) {
  const int number = whole_number(port, 0);
  return number >= 1024 && number <= 65535;
}

// One line for each node, also where several ranks of it say the same.
std::vector<EvidenceLine> evidence_of(const std::vector<Rendezvous>& all) {
  std::vector<EvidenceLine> evidence;
  std::set<std::tuple<std::string, std::string, std::string>> known;
  for (const auto& rendezvous : all) {
    if (known.emplace(rendezvous.host, rendezvous.address, rendezvous.port).second) {
      evidence.push_back(rendezvous.seen());
    }
  }
  return evidence;
}

// What is wrong with where they meet, whatever other jobs do; empty: nothing.
std::string wrong_with(const std::vector<Rendezvous>& all, const JobSeen& job) {
  const auto& first = all.front();
  const auto any = [&](auto condition) { return std::ranges::any_of(all, condition); };
  const auto differs = [&](std::string Rendezvous::*part) {
    return any([&](const Rendezvous& rendezvous) { return rendezvous.*part != first.*part; });
  };
  if (any([](const Rendezvous& m) { return m.address.empty() || m.port.empty(); })) {
    return "master_not_set";
  }
  if (any(is_local)) return "master_is_localhost";
  if (differs(&Rendezvous::address)) return "masters_differ";
  if (!job.hosts.empty() && first.address != job.hosts.front()) return "master_not_first_node";
  if (differs(&Rendezvous::port)) return "ports_differ";
  return any([](const Rendezvous& m) { return !is_usable(m.port); }) ? "port_not_usable" : "";
}

// MASTER_ADDR names another node, and torchrun is told this one.
bool only_endpoints_are_local(const JobSeen& job) {
  return !job.launchers.empty() && std::ranges::all_of(job.launchers, [](const StartSeen& start) {
    const auto master = start.variable("MASTER_ADDR");
    return !master.empty() && !is_local({start.host, master, ""});
  });
}

// torchrun's c10d then takes its own port, 29400, whatever MASTER_PORT says.
std::vector<EvidenceLine> endpoints_without_port(const JobSeen& job) {
  std::vector<EvidenceLine> evidence;
  for (const auto& launcher : job.launchers) {
    const auto call = launcher.call();
    const auto endpoint = call.option("rdzv-endpoint");
    const bool lacks = !endpoint.empty() && endpoint.find(':') == std::string::npos;
    if (!lacks || call.option("rdzv-backend") != "c10d" || call.has("standalone")) continue;
    evidence.push_back(
        {"launcher_option",
         {{"host", launcher.host}, {"option", "rdzv-endpoint"}, {"value", endpoint}}});
  }
  return evidence;
}

}  // namespace

std::optional<Symptom> judge_rendezvous(const JobContext& context) {
  const auto all = rendezvous_of(context.job);
  if (all.empty()) return std::nullopt;
  auto id = wrong_with(all, context.job);
  if (id == "master_is_localhost" && only_endpoints_are_local(context.job)) {
    id = "endpoint_is_localhost";
  }
  if (id.empty()) {
    if (auto evidence = endpoints_without_port(context.job); !evidence.empty()) {
      return Symptom{.id = "endpoint_without_port", .evidence = std::move(evidence)};
    }
  }
  const auto others = rendezvous_of(context.other);
  if (id.empty() && !others.empty() && !is_usable(others.front().port)) {
    return Symptom{.id = "port_not_usable", .evidence = evidence_of(others)};
  }
  if (id.empty() && !others.empty() && others.front().port == all.front().port) {
    id = "port_of_every_job";
  }
  if (id.empty()) return std::nullopt;
  const bool nothing = std::ranges::all_of(
      all, [](const Rendezvous& told) { return told.address.empty() && told.port.empty(); });
  return Symptom{.id = id,
                 .evidence = evidence_of(all),
                 .kind = nothing ? FindingKind::not_started : FindingKind::mistake};
}

}  // namespace checker
