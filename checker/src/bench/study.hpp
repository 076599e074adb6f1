#pragma once
/// The batch-size study: what larger batches cost after the same number of samples, with the
/// learning rate that a step of them wants and with that of the smallest batch.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace checker::bench {

/// What a configuration of a task says, and what its bases say where it is silent.
struct StudyBase {
  std::string name;  ///< as a trainer's --config
  int64_t batch_size = 0;
  double learning_rate = 0;
  int64_t warm_up_steps = 0, max_steps = 0;  ///< 0: it says nothing of them
};

/// Reads folder/name.yaml and its bases. Throws Error for a file that is missing, and for one
/// without a batch size or a learning rate.
StudyBase read_study_base(const std::filesystem::path& folder, const std::string& name);

struct StudyPlan {
  size_t most_ranks = 4;
  size_t largest = 4;       ///< batch, as a multiple of the configuration's; a power of two
  int64_t samples = 19200;  ///< that each run sees; at least
  size_t seeds = 3;
};

/// A batch size with one learning rate. It runs once with each seed.
struct Trial {
  size_t times = 1;  ///< the configuration's batch, on all ranks together
  size_t ranks = 1;
  int64_t batch_size = 0;  ///< of a rank
  bool scaled = false;     ///< its rate is sqrt(times) times the configuration's
  int64_t steps = 0;
  double learning_rate = 0;  ///< of the schedule's highest step
  int64_t warm_up_steps = 0;

  int64_t samples_a_step() const { return batch_size * static_cast<int64_t>(ranks); }
};

/// Batches of 1, 2, 4, ... `largest` times the configuration's, each twice but for the first. Each
/// sees the same number of samples: a multiple of the largest batch. Up to most_ranks ranks take
/// the configuration's batch each, then each takes more.
std::vector<Trial> study_trials(const StudyBase& base, const StudyPlan& plan);

/// The configuration file of a trial for a trainer that multiplies its rate by sqrt(ranks).
std::string config_of(const Trial& trial, const StudyBase& base);

/// What a run with one seed came to.
struct TrialRun {
  double loss = 0;     ///< of the validation split, after the last step
  double seconds = 0;  ///< in training steps
};

/// A file of one run, so that a study can be stopped and go on.
void write_trial_run(const std::filesystem::path& file, const TrialRun& run);
/// Throws Error for a file that is damaged.
TrialRun read_trial_run(const std::filesystem::path& file);

struct TrialResult {
  Trial what;
  std::vector<TrialRun> runs;
  std::string failure;  ///< what a run that failed said last

  double mean_loss() const;
  double least_loss() const;
  double most_loss() const;
  double mean_seconds() const;
};

/// One line for each trial, aligned; `markdown` as GitHub shows tables.
std::vector<std::string> study_table(const std::vector<TrialResult>& results, bool markdown);

/// An SVG: loss over the batch size, a line for each way to choose the learning rate.
std::string study_plot(const std::vector<TrialResult>& results);

}  // namespace checker::bench
