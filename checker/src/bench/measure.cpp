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
  throw Error(std::string("what should be a timing is none: ") + error.what());
}

Result measure(const Project& project, const Case& what, const std::string& python) {
  Result result{.what = what, .timing = {}, .failure = {}};
  const TemporaryFolder folder;
  const auto output = folder.path() / "timing.json";
  try {
    const auto said = capture(command_of(project, what, python, output), kLimit);
    if (!said.success()) {
      result.failure =
          said.out_of_time
              ? "it took more than ten minutes"
              : last_line(said.output, [](const std::string& line) { return !line.empty(); });
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
