#pragma once
/// What several rules ask about passes and samplers.
#include <optional>

#include "judge/run_context.hpp"

namespace checker::rules {

/// By epoch: the pass of every rank that trains, as far as all ranks have gone through it whole.
std::vector<std::vector<const Pass*>> whole_trainings(const RunContext& context);

/// The passes that evaluate on a split after so many epochs of training, by rank. A rank may have
/// several, because a program may evaluate more often than it must, or none.
std::vector<std::vector<const Pass*>> evaluations_after(const RunContext& context, Split split,
                                                        size_t epochs);

/// One pass of each rank: those that deal the split out rightly, if any do; else the first ones.
/// Empty if a rank has none.
std::vector<const Pass*> best_evaluation(const RunContext& context, Split split, size_t epochs);

/// By epoch: best_evaluation of the validations that follow the epochs of training; of the test,
/// the one that follows the last.
std::vector<std::vector<const Pass*>> whole_evaluations(const RunContext& context, Split split);

/// How many batches of a training pass led to no step. Where steps take several batches each, those
/// that remain at the end of the training are too few for one, and do not count.
size_t batches_without_a_step(const RankSeen& rank, const Pass& pass);

/// Whether a rank stopped where --max-steps says, which may be in the midst of an epoch.
bool reached_the_limit(const RunContext& context, const RankSeen& rank);

/// Whether a rank went on beyond that.
bool passed_the_limit(const RunContext& context, const RankSeen& rank);

/// How many epochs a rank has to train: fewer than --epochs where it stopped at the limit.
size_t epochs_to_train(const RunContext& context, const RankSeen& rank);

/// How many epochs every rank has begun to train.
size_t epochs_trained(const RunContext& context);

/// Whether every rank made a DistributedSampler that deals this split out rightly. Tells a wrong
/// sampler from a right one that is not used; no verdict hangs on it alone.
bool right_sampler(const RunContext& context, Split split);

/// What is wrong with a DistributedSampler that a rank made for a split.
struct SamplerProblem {
  std::string variant;  ///< of the finding's texts: "pads"
  EvidenceLine seen;
};

/// A sampler of this split, of this world, that repeats samples because the ranks cannot share
/// evenly; nothing if there is none, or one beside it that does not.
std::optional<instrumentation::SamplerRecord> padding_sampler(const RunContext& context,
                                                              Split split);

/// Whether a sampler of this split, of this world, gives some ranks more samples than others.
bool deals_unevenly(const RunContext& context, Split split);

/// The first problem of a split's samplers; nothing where no rank made one, or all are right.
std::optional<SamplerProblem> sampler_problem(const RunContext& context, Split split);

/// Whether any of these events comes after the rank's shutdown of its group.
bool any_after_shutdown(const RankSeen& rank, const std::vector<size_t>& events);

/// Whether a rank trains on with other parameters than its optimizer made. What it evaluates and
/// saves then is another model than it should be, whatever else it does.
bool parameters_change_beside_the_optimizer(const RunContext& context);

/// What blame tables call a split that is not dealt out as it should be: is it a wrong sampler or
/// none ("sampler.training"), or a right one that the loader does not use ("loader.training")?
std::string sampler_or_loader(const RunContext& context, Split split);

}  // namespace checker::rules
