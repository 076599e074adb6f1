#include <netdb.h>

#include <algorithm>

#include "doctor/doctor.hpp"
#include "doctor/look_up.hpp"
#include "lab/impossible.hpp"
#include "site/site.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::doctor {

namespace {

bool resolves(const std::string& host) {
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (failure == 0) ::freeaddrinfo(found);
  return failure == 0;
}

HealthCheck no_slurm() {
  const auto impossible = lab_impossible();
  return {"Slurm", Health::absent, "none here",
          impossible ? "" : "to rehearse job scripts: ./workbook lab up"};
}

HealthCheck slurm(const std::string& version) {
  const auto nodes = answer_of({"sinfo", "--noheader", "--Node", "--format=%N %T"});
  if (!nodes) {
    return {"Slurm", Health::bad, version + ", but its controller does not answer",
            "wait and try again; sinfo tells more. Without a cluster: ./workbook lab up"};
  }
  const auto lines = split_lines(*nodes);
  const auto idle =
      std::ranges::count_if(lines, [](const std::string& line) { return line.ends_with(" idle"); });
  return {"Slurm", Health::good,
          version + ", " + count_of(lines.size(), "node") + ", " + std::to_string(idle) + " idle"};
}

// The name by which the fast network reaches a node.
HealthCheck interface(const std::string& suffix) {
  const auto nodes = answer_of({"sinfo", "--noheader", "--Node", "--format=%N"});
  if (!nodes || nodes->empty()) return {"interface", Health::absent, suffix + ", not tried"};
  const auto host = split_lines(*nodes).front() + suffix;
  if (resolves(host)) return {"interface", Health::good, host + " is known"};
  return {"interface", Health::bad, "unknown host " + host,
          "correct interface in sbatch/site.conf, or remove it to use the plain node names."};
}

}  // namespace

std::vector<HealthCheck> examine_cluster(const Place& place) {
  std::vector<HealthCheck> checks;
  const auto version = answer_of({"sbatch", "--version"});
  checks.push_back(version ? slurm(version_behind(*version, "")) : no_slurm());
  const auto file = place.project.source / "sbatch" / "site.conf";
  try {
    const auto site = parse_site(read_file(file), place.project.shown(file));
    std::vector<std::string> settings;
    for (const auto& [key, value] : site) settings.emplace_back(key).append("=").append(value);
    checks.push_back({"site", Health::good,
                      settings.empty() ? "sbatch/site.conf sets nothing" : join(settings, ", ")});
    const auto suffix = site.find("interface");
    if (version && suffix != site.end() && !suffix->second.empty()) {
      checks.push_back(interface(suffix->second));
    }
  } catch (const Error& error) {
    checks.push_back({"site", Health::bad, error.what(), "correct sbatch/site.conf"});
  }
  return checks;
}

}  // namespace checker::doctor
