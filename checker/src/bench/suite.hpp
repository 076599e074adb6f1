#pragma once
/// The benchmark suite: what several GPUs are needed for, measured row by row. Each chapter lists
/// its tables in <chapter>/bench.yaml. A row that has been measured is kept in a file, so that the
/// suite goes on where it was stopped.
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "support/project.hpp"

namespace checker::bench {

/// What runs a row.
enum class Launch {
  trainer,   ///< ./workbook run STEP --solution, monitored
  program,   ///< a program of the build folder that takes --ranks=N and prints one JSON object
  python,    ///< a script under torchrun that prints one JSON object a line
  workbook,  ///< a command of ./workbook: its time and its exit status
};

struct SuiteRow {
  std::string label;  ///< "bf16, --fast"
  Launch launch = Launch::trainer;
  std::string program;  ///< step, program, script or command
  /// {ranks}, {output}, {suite} and {text} stand for the number of ranks, a folder of the row's
  /// own, that of the suite, and a text of 66,000 different words, which step_time writes.
  std::vector<std::string> arguments;
  size_t ranks = 1;
  std::string group;   ///< rows that are compared with each other, by precision say
  double samples = 0;  ///< of a step on each rank; 0: the table has no samples_per_s
  std::chrono::seconds limit{300};

  bool ours() const { return launch != Launch::python; }
};

struct SuiteTable {
  std::string title;
  std::string about;                 ///< what is measured, a paragraph
  std::vector<std::string> columns;  ///< figures, by name
  std::string compare;               ///< the figure of speed-ups and comparisons; may be empty
  std::vector<SuiteRow> rows;
};

/// The tables of a file for so many GPUs. Rows without a list of worlds are measured on 1, 2, 4,
/// ... of them and on all; rows for more than there are are left out. Throws Error "file:line:
/// what".
std::vector<SuiteTable> read_suite(const std::filesystem::path& file, size_t gpus);

/// The tables of all chapters that have a bench.yaml, in the course's order.
std::vector<SuiteTable> read_suites(const std::filesystem::path& chapters, size_t gpus);

/// What a row came to.
struct Measured {
  std::map<std::string, double> figures;  ///< "step_ms", "tokens_per_s", "seconds", ...
  std::string failure;                    ///< why there are none
  std::string output;                     ///< the last lines that it printed
  bool stopped = false;  ///< time was up or the user stopped it: it counts as not measured
};

/// What all rows of a suite run with.
struct SuiteRun {
  Project project;
  std::string python;            ///< that can import torch; empty: there is none
  std::filesystem::path folder;  ///< of the suite: tables, plots, a file and a folder for each row
  /// Of this machine's GPUs, those that rows may use: as CUDA_VISIBLE_DEVICES names them. Empty: a
  /// CPU computes.
  std::vector<std::string> gpus = {};
};

/// Runs the row, for no longer than its limit and `left`. `place` is its file without extension,
/// under the suite's folder: the row's own folder, which keeps a trainer's monitor page. Never
/// throws for a program that fails.
Measured measure(const SuiteRun& run, const SuiteRow& row, const std::filesystem::path& place,
                 std::chrono::seconds left);

/// The figures of one JSON object: all numbers in it. Google Benchmark's file gives its first
/// benchmark's. Throws Error for anything else.
std::map<std::string, double> figures_in(const std::string& json);

/// Where a row's result and files go, under the suite's folder: rows/<table>/<label>-<ranks>.
std::filesystem::path place_of(const SuiteTable& table, const SuiteRow& row);

/// Writes <place>.json, whole or not at all.
void write_measured(const std::filesystem::path& place, const SuiteTable& table,
                    const SuiteRow& row, const Measured& measured);

/// Nothing if the row has not been measured, or has changed since. Throws Error for a file that is
/// damaged.
std::optional<Measured> read_measured(const std::filesystem::path& place, const SuiteRow& row);

/// Of each row of a table, in its order; none for rows that have not been measured.
using TableResults = std::vector<std::optional<Measured>>;

/// One line for each row, aligned; `markdown` as GitHub shows tables.
std::vector<std::string> suite_lines(const SuiteTable& table, const TableResults& results,
                                     bool markdown);

/// An SVG: speed-up over ranks of the rows that were measured on one rank and on more. Empty if
/// there are none.
std::string suite_plot(const SuiteTable& table, const TableResults& results);

}  // namespace checker::bench
