#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "bench/suite.hpp"
#include "course/programs.hpp"
#include "process/build.hpp"
#include "process/capture.hpp"
#include "process/gpus.hpp"
#include "process/task_module.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/bench.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace {

namespace fs = std::filesystem;
using bench::Launch;
using bench::Measured;
using bench::SuiteRow;
using bench::SuiteRun;
using bench::SuiteTable;
using bench::TableResults;
using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

cxxopts::Options options_of_suite() {
  cxxopts::Options options("./workbook bench --all-gpus",
                           "Measures everything that several GPUs are needed for: tables, plots, "
                           "raw JSON and monitor pages.\n");
  options.add_options()("all-gpus", "Run the benchmark suite of all chapters")(
      "table", "Only the tables whose titles contain this", cxxopts::value<std::string>(), "TEXT")(
      "ranks", "Largest number of ranks (default: all GPUs)", cxxopts::value<size_t>(), "N")(
      "seconds", "Stop after so many seconds; the row that runs then is measured next time",
      cxxopts::value<int>(), "N")("retry", "Also measure rows again that failed")(
      "rows", "Tables of your own, instead of the chapters'", cxxopts::value<std::string>(),
      "FILE")("output", "Keep everything in this folder (default: output/all-gpus/<GPU>)",
              cxxopts::value<std::string>(), "DIR")("no-build", "Build nothing");
  return options;
}

// As CUDA_VISIBLE_DEVICES names them.
std::vector<std::string> gpus_to_use(size_t ranks) {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::vector<std::string> gpus = visible ? split(visible, ',') : std::vector<std::string>();
  for (size_t gpu = 0; !visible && gpu < ranks; ++gpu) gpus.push_back(std::to_string(gpu));
  gpus.resize(std::min(gpus.size(), ranks));
  return gpus;
}

// "nvidia-h100-80gb-hbm3": figures of different GPUs are kept apart.
std::string name_of_gpus() {
  const auto said =
      capture({.arguments = {"nvidia-smi", "--query-gpu=name", "--format=csv,noheader"},
               .environment = {},
               .directory = {}});
  const auto lines = split_lines(said.output);
  if (!said.success() || lines.empty()) throw Error("nvidia-smi: " + said.output);
  auto name = lines.front();
  std::ranges::transform(name, name.begin(), [](unsigned char letter) {
    return std::isalnum(letter) ? static_cast<char>(std::tolower(letter)) : '-';
  });
  return name;
}

std::vector<SuiteTable> tables_of(const Project& project, const cxxopts::ParseResult& parsed,
                                  size_t ranks) {
  auto tables = parsed.count("rows") ? bench::read_suite(parsed["rows"].as<std::string>(), ranks)
                                     : bench::read_suites(project.chapters(), ranks);
  if (!parsed.count("table")) return tables;
  const auto wanted = parsed["table"].as<std::string>();
  std::vector<std::string> titles;
  for (const auto& table : tables) titles.push_back(table.title);
  std::erase_if(tables,
                [&](const auto& table) { return table.title.find(wanted) == std::string::npos; });
  if (tables.empty()) {
    throw UsageError("--table: no title contains " + wanted + ". There are:\n  " +
                     join(titles, "\n  "));
  }
  return tables;
}

void build_what_rows_need(const Project& project, const std::vector<SuiteTable>& tables) {
  configure_benchmarks(project);
  const auto course = load_course(project.chapters());
  std::set<std::string> targets{"step_time"};
  for (const auto& table : tables) {
    for (const auto& row : table.rows) {
      if (row.launch == Launch::program) targets.insert(row.program);
      if (row.launch != Launch::trainer) continue;
      targets.insert(find_program(project, course.step(row.program), true).target);
      const auto task = std::ranges::find(row.arguments, "--task");
      if (task == row.arguments.end() || task + 1 == row.arguments.end()) continue;
      for (const auto& target : targets_of_task(project, *(task + 1))) targets.insert(target);
    }
  }
  const std::vector<std::string> list(targets.begin(), targets.end());
  build_targets(project, list, "building what the rows need");
}

/// Measures what is not there yet.
class Suite {
 public:
  Suite(SuiteRun run, std::vector<SuiteTable> tables, bool retry)
      : run_(std::move(run)), tables_(std::move(tables)) {
    for (const auto& table : tables_) {
      auto& results = results_.emplace_back();
      for (const auto& row : table.rows) {
        auto found = bench::read_measured(run_.folder / place_of(table, row), row);
        if (found && retry && !found->failure.empty()) found.reset();
        results.push_back(std::move(found));
      }
    }
  }

  size_t left() const {
    return count([](const std::optional<Measured>& result) { return !result.has_value(); });
  }

  size_t failed() const {
    return count(
        [](const std::optional<Measured>& result) { return result && !result->failure.empty(); });
  }

  // Until all is measured, the time is up, or somebody interrupts.
  void measure_until(Clock::time_point deadline) {
    for (size_t i = 0; i < tables_.size(); ++i) {
      for (size_t j = 0; j < tables_[i].rows.size(); ++j) {
        if (!results_[i][j] && !measure_row(i, j, deadline)) return;
      }
    }
  }

  void report() const {
    std::string page = "# Benchmark suite\n";
    for (size_t i = 0; i < tables_.size(); ++i) report_table(i, page);
    write_file(run_.folder / "bench.md", page);
  }

 private:
  size_t count(bool (*wanted)(const std::optional<Measured>&)) const {
    size_t found = 0;
    for (const auto& results : results_) {
      found += static_cast<size_t>(std::ranges::count_if(results, wanted));
    }
    return found;
  }

  bool measure_row(size_t i, size_t j, Clock::time_point deadline) {
    const auto time = std::chrono::duration_cast<seconds>(deadline - Clock::now());
    if (time <= seconds::zero()) return false;
    const auto& table = tables_[i];
    const auto& row = table.rows[j];
    terminal::Stage stage(row.label + (row.ours() ? "" : " (Python)") + ", " +
                          count_of(row.ranks, "rank"));
    stage.note("[" + std::to_string(left()) + " left]");
    const auto place = place_of(table, row);
    auto measured = bench::measure(run_, row, place, time);
    if (measured.stopped) {
      stage.idle();
      return false;
    }
    bench::write_measured(run_.folder / place, table, row, measured);
    measured.failure.empty() ? stage.done() : stage.failed();
    if (!measured.failure.empty()) terminal::complain(measured.failure);
    results_[i][j] = std::move(measured);
    return true;
  }

  void report_table(size_t i, std::string& page) const {
    const auto& table = tables_[i];
    terminal::say("\n" + table.title);
    for (const auto& line : bench::suite_lines(table, results_[i], /*markdown=*/false)) {
      terminal::say("  " + line);
    }
    page += "\n## " + table.title + "\n\n" + table.about + "\n\n";
    for (const auto& line : bench::suite_lines(table, results_[i], true)) page += line + "\n";
    const auto plot = bench::suite_plot(table, results_[i]);
    if (plot.empty()) return;
    const auto name = "speed-up-" + std::to_string(i + 1) + ".svg";
    write_file(run_.folder / name, plot);
    page += "\n![Speed-up over ranks](" + name + ")\n";
  }

  SuiteRun run_;
  std::vector<SuiteTable> tables_;
  std::vector<TableResults> results_;
};

SuiteRun suite_run_of(const Project& project, const cxxopts::ParseResult& parsed, size_t ranks,
                      bool on_gpus) {
  SuiteRun run{.project = project, .python = python_with_torch(project), .folder = {}};
  if (on_gpus) run.gpus = gpus_to_use(ranks);
  run.folder =
      fs::absolute(parsed.count("output") ? fs::path(parsed["output"].as<std::string>())
                                          : fs::path("output") / "all-gpus" /
                                                (on_gpus ? name_of_gpus() : std::string("cpu")));
  fs::create_directories(run.folder);
  return run;
}

}  // namespace

int run_bench_suite(const Project& project, const Arguments& arguments) {
  const auto parsed =
      parse(options_of_suite(), "[--table TEXT] [--seconds N] [--output DIR]",
            "It keeps the result of each row. Run the same command again to go on where it "
            "stopped.\nThe exit status is 0 once every row is measured and none failed. NVLink "
            "multicast is off.\nRun nothing else at the same time.",
            arguments);
  if (!parsed) return 0;
  const bool on_gpus = gpus_here() > 0 && cached(project, "WORLDSIZE_CUDA") == "ON";
  if (!on_gpus && !parsed->count("rows")) {
    throw UsageError(
        "The suite needs GPUs, and a build for them. Fix: run it on a machine with "
        "GPUs, as ./workbook --cuda bench --all-gpus.");
  }
  const size_t ranks = parsed->count("ranks") ? (*parsed)["ranks"].as<size_t>()
                       : on_gpus              ? gpus_here()
                                              : 2;
  if (ranks < 1 || (on_gpus && ranks > gpus_here())) {
    throw UsageError("--ranks must be between 1 and " + std::to_string(gpus_here()) +
                     ", the number of GPUs here.");
  }
  const auto tables = tables_of(project, *parsed, ranks);
  const auto run = suite_run_of(project, *parsed, ranks, on_gpus);
  if (!parsed->count("no-build")) build_what_rows_need(project, tables);
  Suite suite(run, tables, parsed->count("retry") > 0);
  suite.measure_until(parsed->count("seconds")
                          ? Clock::now() + seconds((*parsed)["seconds"].as<int>())
                          : Clock::now() + std::chrono::hours(24 * 365));
  suite.report();
  terminal::say("\nTables, plots and raw figures: " + project.shown(run.folder / "bench.md"));
  if (suite.left() > 0) {
    terminal::say(count_of(suite.left(), "row") +
                  " still to measure. Run the same command again to go on.");
  }
  return suite.left() + suite.failed() > 0 ? 1 : 0;
}

}  // namespace checker
