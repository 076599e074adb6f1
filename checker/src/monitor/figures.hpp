#pragma once
/// Computes the figures of a run from its records: the figures that the page, the summary and the
/// rules share.
#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "monitor/run.hpp"

namespace checker::monitor {

struct RankFigures {
  uint32_t rank = 0;
  double step_time = 0;  ///< median, seconds
  /// Of the time in steps, by phase: data of all steps, the others of those that are not replays.
  std::array<double, kStepPhases> shares{};
  size_t replays = 0;  ///< steps that a CUDA graph repeated
  /// Share of the time in steps in which at least one was under way; on GPUs known only if their
  /// kernels were timed.
  std::optional<double> collectives;
  double waiting = 0;            ///< share in which backward only waits for them; CPUs alone tell
  double tokens_per_second = 0;  ///< targets, in the time of steps
  double targets_per_step = 0;
  double evaluation = 0, checkpoints = 0;  ///< seconds
  double first_step = 0;                   ///< when the first step began, seconds
  double cpus = 0;                         ///< busy on average
  double peak = 0;                         ///< bytes resident at most
  /// How much later than half of the others it came to collectives on average, seconds; and in
  /// which share of them it came last.
  double lateness = 0, last = 0;
};

struct GpuFigures {
  std::string host, name;
  uint32_t number = 0;
  std::optional<double> utilisation;  ///< 0 to 1, on average while steps ran
  double peak = 0, total = 0;         ///< bytes
  double joules = 0;                  ///< 0: not known
  std::vector<At<GpuSample>> samples;
};

struct NodeFigures {
  std::string host;
  double cpus = 0;
  double busy = 0;             ///< 0 to 1, on average
  double least_available = 0;  ///< bytes
  double total = 0;
};

/// All collectives of one name, of all ranks.
struct CollectiveFigures {
  std::string name;
  double calls = 0;    ///< of a rank, on average
  double bytes = 0;    ///< given by a rank, on average
  double seconds = 0;  ///< a rank's, on average
};

/// The mean loss of a split, over all ranks.
struct EvaluationFigures {
  std::string split;
  double step = 0;  ///< after so many optimizer steps
  double time = 0;  ///< at its end, seconds
  double loss = 0;
};

struct Figures {
  double duration = 0;
  size_t steps = 0;              ///< of the rank that did the most
  size_t replays = 0;            ///< those that a CUDA graph repeated, of the rank with the most
  double step_time = 0;          ///< median over all ranks, seconds
  double tokens_per_second = 0;  ///< of all ranks together
  size_t compared = 0;           ///< collectives that all ranks of their group recorded
  std::optional<double> first_loss, last_loss;  ///< mean over ranks, of ten steps
  std::vector<EvaluationFigures> evaluations;   ///< in order of split, then step
  std::optional<double> best_validation;        ///< the least loss
  std::vector<RankFigures> ranks;
  std::vector<GpuFigures> gpus;
  std::vector<NodeFigures> nodes;
  std::vector<CollectiveFigures> collectives;
  double gpu_hours = 0, core_hours = 0, watt_hours = 0;
};

Figures figures_of(const Run& run);

/// "repeats 1985 of the steps; ...": where a CUDA graph does, whose inside nobody sees.
std::string replays_in_words(const Figures& figures);

/// Whether it is known how long its collectives took. A host runs ahead of its GPU: there, the time
/// from a call to its end says nothing, and kernels must have been timed.
bool tells_times(const RankRecord& record);

/// By host, how far its clock is ahead of the first rank's, as the ends of common collectives show:
/// nobody leaves an all-reduce before the last one came. Only what is more than noise.
std::map<std::string, double> clock_offsets(const Run& run);

/// The value in the middle; 0 of nothing.
double median(std::vector<double> values);

}  // namespace checker::monitor
