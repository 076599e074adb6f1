#include "jobs/run_job.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

// "JobId=4 JobName=x ... JobState=RUNNING Reason=None": the value of one key.
std::string field(const std::string& text, const std::string& key) {
  const auto at = text.find(" " + key + "=");
  if (at == std::string::npos) return "";
  const auto begin = at + key.size() + 2;
  return text.substr(begin, text.find_first_of(" \n", begin) - begin);
}

bool is_over(const std::string& state) {
  constexpr std::array going{"", "PENDING", "RUNNING", "CONFIGURING", "COMPLETING", "SUSPENDED"};
  return std::ranges::find(going, state) == going.end();
}

}  // namespace

JobSeen run_job(const Lab& lab, const JobSite& site, std::chrono::seconds patience) {
  JobSeen job;
  const auto submitted =
      lab.run({"sbatch", "--parsable", site.script().string()}, {}, site.folder(), 30s);
  if (submitted.status != 0) {
    job.refused = trim(submitted.output);
    return job;
  }
  const std::string number(trim(submitted.output));
  const auto show = [&] {
    return lab.run({"scontrol", "-o", "show", "job", number}, {}, "/", 30s);
  };
  auto deadline = Clock::now() + patience;
  uint64_t seen = 0;
  std::string shown;
  while (true) {
    const auto said = show();
    if (said.status != 0) throw Error("The lab's Slurm does not know its job: " + said.output);
    shown = said.output;
    if (is_over(field(shown, "JobState"))) break;
    if (const auto now = site.progress(); now != seen && !job.out_of_time) {
      seen = now;
      deadline = Clock::now() + patience;
    }
    if (Clock::now() >= deadline && !job.out_of_time) {
      job.out_of_time = true;
      job.reason = field(shown, "Reason");
      lab.run({"scancel", "--full", number}, {}, "/", 30s);
    }
    if (Clock::now() >= deadline + 30s) throw Error("The lab's Slurm does not end its job.");
    std::this_thread::sleep_for(100ms);
  }
  job.state = field(shown, "JobState");
  const auto nodes = field(shown, "NodeList");
  if (!nodes.empty() && nodes != "(null)") {
    const auto names = lab.run({"scontrol", "show", "hostnames", nodes}, {}, "/", 30s);
    for (const auto& name : split_lines(names.output)) job.hosts.emplace_back(name);
  }
  site.read(job);
  return job;
}

}  // namespace checker
