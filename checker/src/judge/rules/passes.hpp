#pragma once
/// What several rules ask about passes and samplers.
#include <optional>

#include "judge/run_context.hpp"

namespace checker::rules {

/// By epoch: the pass of every rank over a split, as far as all ranks have gone through it whole.
std::vector<std::vector<const Pass*>> whole_passes(const RunContext& context, Split split);

/// Whether every rank made a DistributedSampler that deals this split out rightly. Tells a wrong
/// sampler from a right one that is not used; no verdict hangs on it alone.
bool right_sampler(const RunContext& context, Split split);

/// What is wrong with a DistributedSampler that a rank made for a split.
struct SamplerProblem {
  std::string variant;  ///< of the finding's texts: "pads"
  EvidenceLine seen;
};

/// The first problem of a split's samplers; nothing where no rank made one, or all are right.
std::optional<SamplerProblem> sampler_problem(const RunContext& context, Split split);

/// Whether any of these events comes after the rank's shutdown of its group.
bool any_after_shutdown(const RankSeen& rank, const std::vector<size_t>& events);

/// What blame tables call a split that is not dealt out as it should be: is it a wrong sampler or
/// none ("sampler.training"), or a right one that the loader does not use ("loader.training")?
std::string sampler_or_loader(const RunContext& context, Split split);

}  // namespace checker::rules
