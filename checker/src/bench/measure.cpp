#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/bench.hpp"
#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::bench {

namespace {

using nlohmann::json;

constexpr std::chrono::minutes kLimit{10};

std::string joined_rank(size_t ranks) { return "--nproc-per-node=" + std::to_string(ranks); }

Command command_of(const Project& project, const Case& what, const std::string& python,
                   const std::filesystem::path& output) {
  // NVLink multicast stays off: figures are to be the same on machines that lack it.
  Command command{.arguments = {}, .environment = {"NCCL_NVLS_ENABLE=0"}, .directory = {}};
  if (what.ours) {
    command.arguments = {(project.build / "bin" / "step_time").string(),
                         "--ranks=" + std::to_string(what.ranks), "--benchmark_out_format=json",
                         "--benchmark_out=" + output.string()};
  } else {
    command.arguments = {python};
    if (what.ranks > 1) {
      const std::vector<std::string> launch{"-m", "torch.distributed.run", "--standalone",
                                            joined_rank(what.ranks)};
      command.arguments.insert(command.arguments.end(), launch.begin(), launch.end());
    }
    command.arguments.push_back((project.source / "tasks" / "benchmarks" / "peer.py").string());
  }
  command.arguments.insert(command.arguments.end(), what.arguments.begin(), what.arguments.end());
  return command;
}

std::string last_line(const std::string& text, bool (*wanted)(const std::string&)) {
  std::string last;
  for (const auto& line : split_lines(text)) {
    if (wanted(line)) last = line;
  }
  return last;
}

}  // namespace

Timing timing_of(const std::string& text, bool ours) try {
  auto found = json::parse(text);
  if (ours) found = found.at("benchmarks").at(0);
  Timing timing{.step_ms = found.at("step_ms"),
                .least_ms = found.at("least_ms"),
                .most_ms = found.at("most_ms"),
                .tokens_per_s = found.at("tokens_per_s"),
                .limit_ms = {},
                .all_reduce_ms = {}};
  if (found.contains("limit_ms")) timing.limit_ms = found["limit_ms"].get<double>();
  if (found.contains("all_reduce_ms")) timing.all_reduce_ms = found["all_reduce_ms"].get<double>();
  return timing;
} catch (const json::exception& error) {
  throw Error(std::string("expected a timing, got: ") + error.what());
}

Timing timing_of(const monitor::Run& run) {
  constexpr size_t kWindow = 50;
  const auto& steps = run.ranks.front().steps;
  std::vector<double> windows;
  for (size_t first = kWindow; first + kWindow <= steps.size(); first += kWindow) {
    double seconds = 0;
    for (size_t i = first; i < first + kWindow; ++i) seconds += steps[i].duration();
    windows.push_back(seconds / kWindow * 1e3);
  }
  if (windows.empty()) throw Error("the trainer took fewer than 100 steps");
  std::ranges::sort(windows);
  const double middle = windows[windows.size() / 2];
  const double tokens = double(steps.back().targets) * double(run.ranks.size());
  return {.step_ms = middle,
          .least_ms = windows.front(),
          .most_ms = windows.back(),
          .tokens_per_s = tokens / middle * 1e3,
          .limit_ms = {},
          .all_reduce_ms = {}};
}

namespace {

// On GPUs on a text of as many words as step_time's; on CPUs on the built-in one.
Command trainer_of(const Project& project, const Case& what, const std::filesystem::path& folder) {
  Command command{.arguments = {(project.source / "workbook").string(), "run", "06", "--solution",
                                "--no-build", "--world", std::to_string(what.ranks), "--",
                                "--output", (folder / "output").string()},
                  .environment = {"NCCL_NVLS_ENABLE=0"},
                  .directory = {}};
  command.arguments.insert(command.arguments.end(), what.arguments.begin(), what.arguments.end());
  if (std::ranges::find(what.arguments, "--config=seed") == what.arguments.end()) return command;
  const auto text = (folder / "text").string();
  const auto written =
      capture({.arguments = {(project.build / "bin" / "step_time").string(), "--text=" + text},
               .environment = {},
               .directory = {}});
  if (!written.success()) throw Error("step_time --text: " + written.output);
  command.arguments.insert(command.arguments.end(), {"--data", text});
  return command;
}

}  // namespace

Result measure(const Project& project, const Case& what, const std::string& python) {
  Result result{.what = what, .timing = {}, .failure = {}};
  const TemporaryFolder folder;
  const auto output = folder.path() / "timing.json";
  try {
    const auto said = capture(what.trainer ? trainer_of(project, what, folder.path())
                                           : command_of(project, what, python, output),
                              kLimit);
    if (!said.success()) {
      result.failure =
          said.out_of_time
              ? "it took more than ten minutes"
              : last_line(said.output, [](const std::string& line) { return !line.empty(); });
      return result;
    }
    if (what.trainer) {
      result.timing = timing_of(monitor::load_run(folder.path() / "output"));
      return result;
    }
    result.timing = timing_of(
        what.ours
            ? read_file(output)
            : last_line(said.output, [](const std::string& line) { return line.starts_with('{'); }),
        what.ours);
  } catch (const Error& error) {
    result.failure = error.what();
  }
  return result;
}

}  // namespace checker::bench
