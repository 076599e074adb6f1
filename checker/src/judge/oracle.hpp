#pragma once
/// Asks the replay what the runs should have given (see checker/replay/replay.hpp).
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "judge/experiment.hpp"

namespace checker {

/// The deviation of what could not be held against anything.
constexpr double kUnknown = 1e300;

/// Relative deviations of one optimizer step on one rank; kUnknown where a thing could not be held
/// against anything.
struct StepDeviations {
  double apart = 0;    ///< parameters, from rank 0's
  double rates = 0;    ///< learning rates, from the schedule's
  double update = 0;   ///< the next step's parameters, from what the optimizer makes of these
  bool known = false;  ///< whether the gradients could be computed again on every rank
  // Gradients, from hypotheses.
  double mean = 0, local = 0, sum = 0, twice = 0, accumulated = 0, nothing = 0;
  double target_mean = kUnknown;  ///< gradients, from the mean over all ranks' targets
  double together = kUnknown;     ///< and from those of all ranks' batches as one batch
  double target_multiple = 0;  ///< the gradients are so many times that mean; 0: no multiple of it
  /// Each parameter's gradient is so many times the mean; empty: one has another direction.
  std::vector<double> multiples;
  std::vector<std::string> parameters;  ///< whose gradient is not the mean
  /// The gradients are the mean over these ranks, who are not all; empty if over no such ranks.
  std::vector<size_t> mean_over;
  double rate_factor = 0;  ///< by which all learning rates are larger than the schedule's; 0: none
};

struct FileContent {
  std::filesystem::path file;
  std::string holds;   ///< "epoch 2" (from 1), "initial", "other", "unreadable"
  std::string format;  ///< "safetensors", "archive" (torch::save's), "empty", "cut", "other"
};

struct ExpectedRank {
  std::vector<StepDeviations> steps;
  std::vector<FileContent> files;
};

/// Where in the whole model the pieces lie that ranks train, by elements.
struct Cover {
  size_t elements = 0;             ///< of the model
  size_t once = 0;                 ///< on one rank
  size_t everywhere = 0;           ///< on every rank
  size_t nowhere = 0;              ///< on none
  std::vector<std::string> names;  ///< of parameters with such
  std::vector<size_t> unknown;     ///< by rank: that are none of the model's
};

/// Bytes of tensors with which one process trains the whole model.
struct SerialMemory {
  uint64_t parameters = 0, state = 0;  ///< gradients are as large as parameters
  std::optional<uint64_t> block;       ///< parameters of the largest block, if it has blocks
  uint64_t rest = 0;                   ///< parameters that are in no block
  uint64_t forward = 0;                ///< kept for backward(): batch, activations, output
  uint64_t forward_most = 0;           ///< the most on the way there
};

/// A file of the folder in which the best model was saved.
struct SavedFile {
  std::filesystem::path file;
  uint64_t bytes = 0;
  bool readable = false;
  size_t own = 0;  ///< elements of the model that are in it
};

/// What such a folder holds, by elements of the model.
struct SavedModel {
  std::vector<SavedFile> files;
  size_t epoch = 0;  ///< from 1, after which most of the files were written; 0: of none
  size_t elements = 0, missing = 0, several = 0;
  size_t older = 0;  ///< that are in the files as they were after another epoch
};

/// A run that started from the model that another one had saved.
struct ContinuedRun {
  size_t epoch = 0;  ///< from 1, after which the model was what ranks start with; 0: a new model
  std::vector<size_t> unknown;  ///< by rank: elements with which that model does not begin
  size_t elements = 0;
  size_t steps = 0;
  /// Parameters after steps, from what the optimizer makes of them with its state of then, and with
  /// a new one.
  double kept = kUnknown, fresh = kUnknown;

  bool starts_right() const {
    return epoch > 0 && std::ranges::all_of(unknown, [](size_t n) { return n == 0; });
  }
};

struct ExpectedWorld {
  std::string error;  ///< why there is nothing more, or empty
  std::vector<ExpectedRank> ranks;
  std::vector<double> training;    ///< mean loss by epoch, over all ranks
  std::vector<double> validation;  ///< by epoch, over the whole split
  /// Of the model of the last epoch; and of the best one, which a program may test as well.
  std::optional<double> test, test_of_best;
  std::optional<Cover> cover;             ///< if some rank trains pieces of the model
  std::optional<SerialMemory> memory;     ///< where ranks may train pieces
  std::optional<SavedModel> saved;        ///< if there is such a folder
  std::optional<ContinuedRun> continued;  ///< if another run went on from it

  struct Loss {
    std::string name;  ///< "training loss of epoch 1"
    double value;
  };
  /// All of them, in the order in which a trainer reports them. The best validation loss is there
  /// a second time, because a line at the end says it again.
  std::vector<Loss> losses() const;
};

struct Expected {
  std::vector<ExpectedWorld> worlds;  ///< in the order of the runs
};

/// Takes the best model's test loss for the test loss, where that is what rank 0 told.
void choose_test(ExpectedWorld& truth, const Run& run, double tolerance);

/// Of programs that train nothing.
Expected nothing_to_replay(const std::vector<RecordedRun>& runs);

/// holding: what optimizers may hold. folder: that of the runs and the plan. box: where the replay
/// is shut in, for it reads what programs left behind; may be null. servers: one of them may be the
/// replay's; may be null. Throws Error if the replay itself fails.
Expected ask_oracle(const std::filesystem::path& replay_program,
                    const std::vector<RecordedRun>& runs, const std::vector<std::string>& options,
                    Holding holding, const std::filesystem::path& folder, const Box* box,
                    ForkServers* servers);

}  // namespace checker
