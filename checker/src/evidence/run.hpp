#pragma once
/// What the ranks of one run did, in the order in which they did it: the evidence that rules look
/// at.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "evidence/log.hpp"
#include "evidence/tensors.hpp"
#include "process/ranks.hpp"
#include "process/trainer.hpp"

namespace checker {

/// By its place among the task's, which may have more.
enum class Split { train, validation, test };

/// One process group as one rank knows it.
struct GroupSeen {
  uint32_t number = 0;
  uint32_t rank = 0, size = 0;
  std::string name;
  std::vector<uint32_t> members;      ///< world ranks; empty if the program made the group alone
  std::optional<size_t> shut_down{};  ///< the place in the log of its shutdown, if there is one
};

/// One collective as one rank issued it.
struct CollectiveSeen {
  instrumentation::CollectiveRecord call;
  std::vector<uint64_t> frames;  ///< return addresses, innermost first
  size_t event = 0;              ///< its place in the log
  size_t end_event = 0;          ///< that of its end, if it has completed
  bool completed = false, failed = false;
  std::string unit{};                  ///< whose parameters or gradients it moves; empty: not known
  std::optional<size_t> waited_from;   ///< when the program first waits for it
  std::optional<size_t> waited_until;  ///< when it has waited
  uint64_t products_meanwhile = 0;     ///< matrix products begun between the call and that
  bool may_wait_unseen = false;        ///< the program has a future of it
};

/// A dataset was asked for these samples.
struct FetchSeen {
  Split split = Split::train;
  std::vector<uint64_t> ids;
  size_t event = 0;
};

/// A loss that was computed, and the samples that it was computed of. They are recognised by their
/// values, so that it does not matter how they came there.
struct BatchSeen {
  Split split = Split::train;
  std::vector<uint64_t> ids;  ///< empty if the samples are not known
  size_t event = 0;
  double loss_sum = 0, loss_count = 0;
  std::vector<double> metrics;  ///< a sum and a count of each; none in training
  bool with_gradients = false;  ///< they were on
  bool backward = false;        ///< backward() came to this loss
  bool after_report = false;    ///< the trainer reported a score since the loss before
  std::optional<size_t> step;   ///< the optimizer step that it led to
  std::optional<size_t>
      forward;  ///< the forward pass that it comes from, by its place in `forwards`
  /// Whether it was there to train on.
  bool trains() const { return backward || step.has_value(); }
};

/// One way through a split, in training or in evaluation.
struct Pass {
  Split split = Split::train;
  bool training = false;
  size_t epoch = 0;  ///< training passes that had ended before an evaluation, or began before
  std::vector<BatchSeen> batches;
  std::vector<uint64_t> ids() const;
};

/// What was done with the samples of these losses, which are in their order. split_sizes: by split;
/// world: so many ranks share a split.
std::vector<Pass> passes_of(std::vector<BatchSeen> batches,
                            const std::vector<uint64_t>& split_sizes, size_t world);

/// One step of the model: parameters before it and gradients, flat, in the model's order. Several
/// optimizers that step one after the other make one.
struct StepSeen {
  std::vector<double> values, gradients;
  std::vector<double> learning_rates;  ///< of the optimizers' groups
  std::vector<bool> stepped;           ///< by parameter: whether an optimizer holds it
  size_t event = 0;                    ///< the place of its gradients in the log
};

/// The memory of a rank's tensors at some moment.
struct MemorySeen {
  instrumentation::AllocatedRecord bytes;
  size_t event = 0;
};

/// What the main thread began, or ended: Phase::none.
struct PhaseSeen {
  instrumentation::PhaseRecord mark;
  size_t event = 0;
};

/// A forward pass, by its place in the log.
struct ForwardSeen {
  bool training = false;   ///< is_training()
  bool gradients = false;  ///< they were on
  size_t event = 0;
  /// The place in the log of the state of the generator of random numbers that it began with.
  std::optional<size_t> generator{};
};

/// The buffers of the model from this place in the log on.
struct BuffersSeen {
  std::vector<TensorSeen> tensors;
  size_t event = 0;
};

/// A score that the trainer reports.
struct ReportSeen {
  double loss = 0;
  std::vector<double> metrics;  ///< in the order of their names
};

/// A result that a plain program shows.
struct ResultSeen {
  TensorSeen tensor;
  size_t event = 0;
};

/// A file that a rank was about to change.
struct FileChange {
  instrumentation::FileAction action = instrumentation::FileAction::write;
  std::filesystem::path path, new_path;  ///< absolute; the new one of a file that moves
  size_t event = 0;
  uint64_t nanoseconds = 0;  ///< comparable between ranks
};

/// A rank wants prepared data.
struct PreparationSeen {
  bool makes = false;  ///< it is about to make them: they were not there
  std::string name;
  size_t event = 0;
};

/// What setup() was asked for; empty: nothing in particular.
struct SetupSeen {
  std::string backend, device;
};

struct SetEpoch {
  uint64_t sampler = 0, epoch = 0;
};

struct RankSeen {
  RankPlace place;
  Log log;
  RankResult result;
  std::vector<std::string> output, errors;   ///< lines, the first few thousand
  uint64_t lines_left_out = 0;               ///< of the output, behind those
  std::filesystem::path folder;              ///< where it ran
  std::vector<std::filesystem::path> files;  ///< that it left in there, from that folder
  std::vector<FileChange> file_changes;      ///< in a folder that ranks share
  std::vector<PreparationSeen> preparations;
  std::vector<ResultSeen> results;
  std::optional<size_t> first_read;  ///< of a file that another rank wrote

  // What the log says.
  std::vector<GroupSeen> groups;
  std::vector<CollectiveSeen> collectives;
  std::vector<FetchSeen> fetches;
  std::vector<Pass> passes;
  std::vector<StepSeen> steps;
  std::vector<TensorSeen> model;       ///< the one that is trained, as make_model returned it
  std::vector<TensorSeen> parameters;  ///< its parameters, as far as optimizers step, no values
  bool in_pieces = false;              ///< these are pieces of them, without names
  std::vector<MemorySeen> memory;
  std::vector<BuffersSeen> buffers;
  std::vector<PhaseSeen> phases;
  std::vector<ForwardSeen> forwards;
  std::optional<uint64_t> planned_world;     ///< the world size that the last Progress planned with
  std::vector<double> reported;              ///< the mean losses
  std::vector<ReportSeen> reports;           ///< the same, with their metrics
  std::vector<std::string> splits, metrics;  ///< the names of the task's
  std::optional<std::string> unread;         ///< what the log holds that cannot be read
  std::vector<SetupSeen> setups;             ///< calls of it
  std::vector<instrumentation::SamplerRecord> samplers;
  std::vector<SetEpoch> epochs_set;
  std::vector<std::string> devices;
  std::vector<size_t> prints, saves;     ///< events: print0 and save0 took this rank for rank 0
  std::optional<size_t> shutdown_event;  ///< the first shutdown of a group
  bool left_regularly = false;           ///< returned from main or called exit

  /// The passes that train on a split.
  std::vector<const Pass*> trainings(Split split = Split::train) const;
  /// The passes that evaluate on a split.
  std::vector<const Pass*> evaluations(Split split) const;
  /// The model's buffers at a place in the log: what was recorded last up to there.
  std::vector<TensorSeen> buffers_at(size_t event) const;
};

struct Run {
  size_t world = 1;
  std::vector<RankSeen> ranks;
  GroupResult result;
  double seconds = 0;
};

/// What an optimizer may hold.
enum class Holding {
  parameters,            ///< the parameters of a model
  parameters_or_pieces,  ///< or tensors of the program's own, which are pieces of these
};

/// Sorts what a log holds into the rank, whose place is known.
void interpret(RankSeen& rank, Holding holding = Holding::parameters);

}  // namespace checker
