#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/bench.hpp"
#include "bench/suite.hpp"
#include "monitor/figures.hpp"
#include "monitor/page.hpp"
#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::bench {

namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr size_t kLastLines = 12;

// The trainer's records, and the file of Google Benchmark's programs.
constexpr const char* kOutput = "output";
constexpr const char* kTiming = "timing.json";

std::string program_of(const SuiteRun& run, const SuiteRow& row) {
  switch (row.launch) {
    case Launch::program:
      return (run.project.build / "bin" / row.program).string();
    case Launch::python:
      return (run.project.source / row.program).string();
    default:
      return (run.project.build / "bin" / "checker").string();
  }
}

std::vector<std::string> beginning_of(const SuiteRun& run, const SuiteRow& row,
                                      const fs::path& folder) {
  const auto program = program_of(run, row), ranks = std::to_string(row.ranks);
  switch (row.launch) {
    case Launch::trainer:
      return {program,   "run", row.program, "--solution", "--no-build",
              "--world", ranks, "--",        "--output",   (folder / kOutput).string()};
    case Launch::program:
      return {program, "--ranks=" + ranks};
    case Launch::python:
      if (row.ranks == 1) return {run.python, program};
      return {
          run.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=" + ranks,
          program};
    case Launch::workbook:
      break;
  }
  return {program, row.program};
}

// Programs see as many GPUs as the row has ranks.
std::vector<std::string> environment_of(const SuiteRun& run, const SuiteRow& row) {
  std::vector<std::string> environment{
      // NVLink multicast stays off: figures are to be the same on machines that lack it.
      "NCCL_NVLS_ENABLE=0",
      // Python compiles for minutes; what it has compiled stays for a second try.
      "TORCHINDUCTOR_CACHE_DIR=" + (run.folder / "compiled").string()};
  if (!run.gpus.empty()) {
    const std::span<const std::string> some(run.gpus.data(), std::min(row.ranks, run.gpus.size()));
    environment.push_back("CUDA_VISIBLE_DEVICES=" + join(some, ","));
  }
  return environment;
}

// A text of as many words as step_time's, written once for all rows.
fs::path text_of(const SuiteRun& run) {
  const auto text = run.folder / "text", beside = run.folder / "text.new";
  if (fs::exists(text)) return text;
  const auto written = capture({.arguments = {(run.project.build / "bin" / "step_time").string(),
                                              "--text=" + beside.string(), "--vocabulary=66000"},
                                .environment = {},
                                .directory = {}});
  if (!written.success()) throw Error("step_time --text: " + written.output);
  fs::rename(beside, text);
  return text;
}

Command command_of(const SuiteRun& run, const SuiteRow& row, const fs::path& folder) {
  Command command{.arguments = beginning_of(run, row, folder),
                  .environment = environment_of(run, row),
                  .directory = {}};
  for (auto argument : row.arguments) {
    argument = replaced(argument, "{ranks}", std::to_string(row.ranks));
    argument = replaced(argument, "{output}", folder.string());
    argument = replaced(argument, "{suite}", run.folder.string());
    if (argument.find("{text}") != argument.npos) {
      argument = replaced(argument, "{text}", text_of(run).string());
    }
    command.arguments.push_back(argument);
  }
  return command;
}

void add_evaluation_and_memory(const monitor::Figures& figures, Measured& measured) {
  for (const auto& evaluation : figures.evaluations) {
    if (evaluation.split == "validation") measured.figures["loss"] = evaluation.loss;
  }
  for (const auto& gpu : figures.gpus) {
    auto& peak = measured.figures["peak_gib"];
    peak = std::max(peak, gpu.peak / double(1 << 30));
  }
}

void read_trainer(const SuiteRow& row, const fs::path& folder, Measured& measured) {
  const auto records = monitor::load_run(folder / kOutput);
  const auto figures = monitor::figures_of(records);
  write_file(folder / "monitor.html", monitor::to_page(records, figures));
  measured.figures["steps"] = static_cast<double>(figures.steps);
  add_evaluation_and_memory(figures, measured);
  constexpr size_t kFewSteps = 100;
  if (figures.steps <= kFewSteps) return;  // too few to leave the first out
  const auto timing = timing_of(records);
  measured.figures["step_ms"] = timing.step_ms;
  measured.figures["least_ms"] = timing.least_ms;
  measured.figures["most_ms"] = timing.most_ms;
  measured.figures["tokens_per_s"] = timing.tokens_per_s;
  const auto samples = row.samples * static_cast<double>(row.ranks);
  if (samples > 0) measured.figures["samples_per_s"] = samples / timing.step_ms * 1e3;
}

void read_figures(const SuiteRow& row, const fs::path& folder, const std::string& output,
                  Measured& measured) {
  if (row.launch == Launch::workbook) return;
  if (row.launch == Launch::trainer) return read_trainer(row, folder, measured);
  std::string found;
  for (const auto& line : split_lines(output)) {
    if (line.starts_with('{')) found = line;
  }
  if (fs::exists(folder / kTiming)) found = read_file(folder / kTiming);
  measured.figures.merge(figures_in(found));
}

std::string last_lines(const std::string& output) {
  auto lines = split_lines(output);
  std::erase_if(lines, [](const std::string& line) { return trim(line).empty(); });
  if (lines.size() > kLastLines) lines.erase(lines.begin(), lines.end() - kLastLines);
  return join(lines, "\n");
}

std::string failure_of(const Captured& said, const SuiteRow& row) {
  if (said.out_of_time) {
    return "It had not ended after " + std::to_string(row.limit.count()) + " seconds.";
  }
  const auto lines = split_lines(last_lines(said.output));
  return lines.empty() ? "exit status " + std::to_string(said.status) : lines.back();
}

// Each try begins with an empty folder.
Captured run_row(const SuiteRun& run, const SuiteRow& row, const fs::path& folder, seconds limit) {
  // Only a command of the workbook goes on from what an earlier try left.
  if (row.launch != Launch::workbook) fs::remove_all(folder);
  fs::create_directories(folder);
  return capture(command_of(run, row, folder), limit);
}

}  // namespace

std::map<std::string, double> figures_in(const std::string& text) try {
  auto object = nlohmann::json::parse(text);
  if (object.contains("benchmarks")) object = object.at("benchmarks").at(0);
  std::map<std::string, double> figures;
  for (const auto& [name, value] : object.items()) {
    if (value.is_number()) figures[name] = value.get<double>();
  }
  if (figures.empty()) throw Error("The JSON object holds no number: " + text);
  return figures;
} catch (const nlohmann::json::exception& error) {
  throw Error(std::string("It printed no JSON object with its figures: ") + error.what());
}

Measured measure(const SuiteRun& run, const SuiteRow& row, const fs::path& place, seconds left) {
  const auto folder = run.folder / place;
  const auto limit = std::min(row.limit, left);
  Measured measured;
  try {
    const auto began = std::chrono::steady_clock::now();
    const auto said = run_row(run, row, folder, limit);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - began;
    measured.output = last_lines(said.output);
    measured.stopped = said.interrupted_by != 0 || (said.out_of_time && limit < row.limit);
    if (measured.stopped) return measured;
    if (said.out_of_time || !said.success()) {
      measured.failure = failure_of(said, row);
      return measured;
    }
    measured.figures["seconds"] = taken.count();
    read_figures(row, folder, said.output, measured);
  } catch (const Error& error) {
    measured.failure = error.what();
  }
  fs::remove_all(folder / kOutput);  // models of all rows would fill a disk
  return measured;
}

}  // namespace checker::bench
