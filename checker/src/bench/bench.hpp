#pragma once
/// How fast training steps are here: ours beside Python's, on one rank and on more.
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "monitor/run.hpp"
#include "support/project.hpp"

namespace checker::bench {

/// Something to time.
struct Case {
  std::string label;  ///< "TF32, --fast"
  bool ours = true;   ///< by step_time; else by the peer in Python
  size_t ranks = 1;
  std::vector<std::string> arguments;
  size_t nodes = 1;      ///< that NCCL takes this machine for: between them, TCP on the loopback
  bool trainer = false;  ///< ours, by the trainer of step 06 as ./workbook run starts it
};

struct Timing {
  double step_ms = 0;  ///< the median
  double least_ms = 0, most_ms = 0;
  double tokens_per_s = 0;              ///< of all ranks
  std::optional<double> limit_ms;       ///< roofline: what the hardware could do at best
  std::optional<double> all_reduce_ms;  ///< of all gradients, alone
};

struct Result {
  Case what;
  std::optional<Timing> timing;
  std::string failure;  ///< why there is no timing: what it said last
};

/// On GPUs the configuration `seed` in all precisions on 1, 2, 4, ... and `most_ranks` of them, and
/// of these as two nodes; else the configuration `laptop` on one rank of one thread, of two, and on
/// two ranks of one thread.
std::vector<Case> cases(bool gpus, size_t most_ranks, bool quick);

/// Runs it to its end; never throws for a program that fails.
Result measure(const Project& project, const Case& what, const std::string& python);

/// What Timing the JSON of step_time (Google Benchmark's) or a line of the peer's tells. Throws
/// Error for anything else.
Timing timing_of(const std::string& json, bool ours);

/// The median step of a monitored run, in windows of 50 steps from step 51 on; evaluations between
/// them do not count. Throws Error for a run of less than 101 steps.
Timing timing_of(const monitor::Run& run);

/// How long a step should take on `ranks` ranks: as on one, and the gradients' all-reduce entirely
/// beside it or entirely after it.
struct Model {
  double hidden_ms, exposed_ms;
};
Model model(const Timing& alone, const Timing& together);

/// The same label on one rank; null if that was not timed.
const Result* alone(const std::vector<Result>& results, const Result& of);

/// One line for each result, aligned; `markdown` as GitHub shows tables.
std::vector<std::string> table(const std::vector<Result>& results, bool markdown);

/// An SVG: milliseconds a step on one rank, as bars, with the limit of each.
std::string bars(const std::vector<Result>& results);
/// An SVG: speed-up over ranks; ideal, measured, and where the model says it should lie.
std::string scaling(const std::vector<Result>& results);

}  // namespace checker::bench
