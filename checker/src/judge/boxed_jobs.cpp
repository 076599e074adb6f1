#include "judge/boxed_jobs.hpp"

#include <nlohmann/json.hpp>

#include "plan/plan.hpp"
#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

constexpr auto kLabPatience = 300s;
constexpr uint64_t kProcesses = 600;  // eight ranks on three nodes, torchrun, and threads of all

std::vector<JobEnd> from_json(const std::string& text) {
  std::vector<JobEnd> ends;
  for (const auto& one : json::parse(text)) {
    ends.push_back({.refused = one.at("refused"),
                    .state = one.at("state"),
                    .reason = one.at("reason"),
                    .out_of_time = one.at("out_of_time"),
                    .nodes_asked = one.at("nodes_asked"),
                    .exit_code = one.at("exit_code"),
                    .restarts = one.at("restarts"),
                    .after_signal = one.at("after_signal").get<AfterSignal>(),
                    .hosts = one.at("hosts")});
  }
  return ends;
}

// torchrun and its Python, wherever that is.
void show_python(const Project& project, Mounts& mounts) {
  const auto venv = project.source / ".venv";
  mounts.read_only.push_back(venv);
  std::error_code absent;
  const auto python = fs::canonical(venv / "bin" / "python3", absent);
  if (!absent && !lies_in(python, "/usr") && !lies_in(python, venv)) {
    mounts.read_only.push_back(python.parent_path().parent_path());
  }
}

// The last line that it said, which is ours: jobs have no way to its output.
std::string last_line(const std::string& output) {
  const auto lines = split_lines(output);
  return lines.empty() ? "" : std::string(lines.back());
}

}  // namespace

std::string to_json(const std::vector<JobEnd>& ends) {
  auto all = json::array();
  for (const auto& end : ends) {
    all.push_back({{"refused", end.refused},
                   {"state", end.state},
                   {"reason", end.reason},
                   {"out_of_time", end.out_of_time},
                   {"nodes_asked", end.nodes_asked},
                   {"exit_code", end.exit_code},
                   {"restarts", end.restarts},
                   {"after_signal", end.after_signal},
                   {"hosts", end.hosts}});
  }
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<JobEnd> run_jobs_boxed(const Project& project, const std::vector<JobSite>& sites,
                                   const JobCheckOptions& options, const Box& box) {
  const auto program = project.build / "bin" / "checker";
  const auto scratch = options.folder / "lab";
  fs::create_directories(scratch);
  fs::permissions(scratch, fs::perms(01777));  // as a cluster's /tmp
  Mounts mounts{.read_only = {program, project.build / "CMakeCache.txt", options.trainer,
                              options.folder / kPlanFolder},
                .writable = {},
                .scratch = scratch};
  show_python(project, mounts);
  Command command{.arguments = {program.string(), "run-jobs"},
                  .environment = {"WORLDSIZE_LABS=/tmp/labs"},
                  .directory = {}};
  for (const auto& site : sites) {
    box.hand_over_all(site.folder());
    mounts.writable.push_back(site.folder());
    command.arguments.insert(command.arguments.end(), {site.folder().string(), site.script()});
  }
  auto limits = box.limits();
  limits.processes = kProcesses;
  command.arguments.emplace_back("--");
  for (const auto& word : box.as_sandboxed_user(limits)) command.arguments.push_back(word);
  const auto ran = capture(box.wrap_supervisor(command, mounts), kLabPatience);
  if (ran.interrupted_by) throw Error("Interrupted.");
  if (!ran.success()) throw Error("The lab in the box failed: " + last_line(ran.output));
  return from_json(last_line(ran.output));
}

}  // namespace checker
