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
  std::optional<size_t> waited_from;  ///< when the program first waits for it
  uint64_t products_meanwhile = 0;    ///< matrix products begun between the call and that
};

/// One batch on its way through the trainer.
struct BatchSeen {
  std::vector<uint64_t> ids;
  size_t event = 0;             ///< when it was fetched
  std::optional<size_t> taken;  ///< when it went to its device
  std::optional<double> loss_sum, loss_count;
  std::vector<double> metrics;  ///< a sum and a count of each; none in training
  bool with_gradients = false;
  std::optional<size_t> step;  ///< the optimizer step that followed, counted over the whole run
};

/// One way through a split: all batches until another split, or the same one anew, is fetched.
struct Pass {
  Split split = Split::train;
  size_t epoch = 0;  ///< how many passes over this split came before
  std::vector<BatchSeen> batches;
  std::vector<uint64_t> ids() const;
  /// Whether a loss was computed in it, and always with gradients; or always without.
  bool trains() const;
  bool evaluates() const;
};

/// Batches in the order of their use; passes by what they are for, training or evaluation.
void put_in_order(std::vector<Pass>& passes);

/// One optimizer step: parameters before it and gradients, flat, in the optimizer's order.
struct StepSeen {
  std::vector<double> values, gradients;
  std::vector<double> learning_rates;  ///< of the optimizer's groups
  size_t event = 0;                    ///< the place of its gradients in the log
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

  // What the log says.
  std::vector<GroupSeen> groups;
  std::vector<CollectiveSeen> collectives;
  std::vector<Pass> passes;
  std::vector<StepSeen> steps;
  std::vector<TensorSeen> model;       ///< as the last make_model returned it
  std::vector<TensorSeen> parameters;  ///< of the last optimizer made, in its order, no values
  std::vector<BuffersSeen> buffers;
  std::vector<PhaseSeen> phases;
  std::vector<ForwardSeen> forwards;
  std::vector<double> reported;              ///< the mean losses
  std::vector<ReportSeen> reports;           ///< the same, with their metrics
  std::vector<std::string> splits, metrics;  ///< the names of the task's
  std::optional<std::string> unread;         ///< what the log holds that cannot be read
  std::vector<instrumentation::SamplerRecord> samplers;
  std::vector<SetEpoch> epochs_set;
  std::vector<std::string> devices;
  std::vector<size_t> prints, saves;     ///< events: print0 and save0 took this rank for rank 0
  std::optional<size_t> shutdown_event;  ///< the first shutdown of a group
  bool left_regularly = false;           ///< returned from main or called exit

  std::vector<const Pass*> passes_over(Split split) const;
};

struct Run {
  size_t world = 1;
  std::vector<RankSeen> ranks;
  GroupResult result;
  double seconds = 0;
};

/// Sorts what a log holds into the rank.
void interpret(RankSeen& rank);

}  // namespace checker
