#include <algorithm>
#include <filesystem>

#include "bench/bench.hpp"
#include "process/build.hpp"
#include "process/capture.hpp"
#include "process/gpus.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/bench.hpp"
#include "verbs/options.hpp"

namespace checker {

void configure_benchmarks(const Project& project) {
  if (cached(project, "WORLDSIZE_BENCHMARKS") == "ON") return;
  const auto said =
      capture({.arguments = {project.cmake, "-DWORLDSIZE_BENCHMARKS=ON", project.build.string()},
               .environment = {},
               .directory = {}});
  if (!said.success()) throw Error("Cannot configure the benchmarks:\n" + said.output);
}

std::string python_with_torch(const Project& project) {
  for (const std::string& python :
       {(project.source / ".venv" / "bin" / "python3").string(), std::string("python3")}) {
    try {
      const std::string finds =
          "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)";
      if (capture({.arguments = {python, "-c", finds}, .environment = {}, .directory = {}})
              .success()) {
        return python;
      }
    } catch (const Error&) {  // there is no such program
    }
  }
  return "";
}

namespace {

using bench::Result;

std::vector<Result> measure_all(const Project& project, std::vector<bench::Case> cases,
                                const std::string& python) {
  if (python.empty()) {
    terminal::say("  no Python here can import torch, so there is nothing to compare with");
    std::erase_if(cases, [](const auto& what) { return !what.ours; });
  }
  std::vector<Result> results;
  terminal::Stage stage("timing " + count_of(cases.size(), "kind") + " of steps");
  for (const auto& what : cases) {
    stage.note("[" + std::to_string(results.size() + 1) + "/" + std::to_string(cases.size()) + "]");
    results.push_back(bench::measure(project, what, python));
  }
  stage.done();
  return results;
}

void write_report(const std::vector<Result>& results, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::string page = "# Training steps\n\n";
  for (const auto& line : bench::table(results, /*markdown=*/true)) page += line + "\n";
  page += "\n![Milliseconds a step](step.svg)\n\n![Speed-up over ranks](scaling.svg)\n";
  write_file(folder / "bench.md", page);
  write_file(folder / "step.svg", bench::bars(results));
  write_file(folder / "scaling.svg", bench::scaling(results));
}

}  // namespace

int run_bench(const Project& project, const Arguments& arguments) {
  if (!arguments.empty() && arguments.front() == "scaling") {
    return run_batch_size_study(project, {arguments.begin() + 1, arguments.end()});
  }
  if (std::ranges::find(arguments, "--all-gpus") != arguments.end()) {
    return run_bench_suite(project, arguments);
  }
  cxxopts::Options options(
      "./workbook bench",
      "Times training steps and compares them with Python, on one rank and on more.\n");
  options.add_options()("quick", "Take about a minute only")(
      "ranks", "Largest number of ranks (default: all GPUs, or two on CPUs)",
      cxxopts::value<size_t>(), "N")("output", "Write the table and the plots into this folder",
                                     cxxopts::value<std::string>()->default_value("output/bench"),
                                     "DIR")("no-build", "Build nothing")(
      "all-gpus", "Run the benchmark suite of all chapters: see bench --all-gpus --help");
  const auto parsed = parse(options, "[scaling | --all-gpus] [--quick] [--ranks N] [--output DIR]",
                            "It prints medians, and the least and the greatest in brackets. NVLink "
                            "multicast is off.\nRun nothing else at the same time.\nbench scaling "
                            "is a study of batch sizes: see bench scaling --help.",
                            arguments);
  if (!parsed) return 0;
  const bool gpus = gpus_here() > 0 && cached(project, "WORLDSIZE_CUDA") == "ON";
  size_t ranks = gpus ? gpus_here() : 2;
  if (parsed->count("ranks")) ranks = (*parsed)["ranks"].as<size_t>();
  if (ranks < 1 || ranks > 64) throw UsageError("--ranks must be between 1 and 64.");
  if (gpus && ranks > gpus_here()) {
    throw UsageError("--ranks is larger than the " + count_of(gpus_here(), "GPU") + " here.");
  }
  if (!parsed->count("no-build")) {
    configure_benchmarks(project);
    const std::vector<std::string> targets{"step_time", "solution_06"};
    build_targets(project, targets, "building step_time and solution_06");
  }
  const auto results = measure_all(project, bench::cases(gpus, ranks, parsed->count("quick") > 0),
                                   python_with_torch(project));
  for (const auto& line : bench::table(results, /*markdown=*/false)) terminal::say("  " + line);
  bool all = true;
  for (const auto& result : results) {
    if (result.timing) continue;
    terminal::complain(result.what.label + (result.what.ours ? " (C++)" : " (Python)") + ": " +
                       result.failure);
    all = false;
  }
  const std::filesystem::path folder = (*parsed)["output"].as<std::string>();
  write_report(results, folder);
  terminal::say("  table and plots: " + (folder / "bench.md").string());
  return all ? 0 : 1;
}

}  // namespace checker
