#include "judge/rules/passes.hpp"

#include <algorithm>

namespace checker::rules {

std::vector<std::vector<const Pass*>> whole_passes(const RunContext& context, Split split) {
  std::vector<std::vector<const Pass*>> epochs;
  for (size_t epoch = 0;; ++epoch) {
    std::vector<const Pass*> passes;
    for (const auto& rank : context.run().ranks) {
      const auto all = rank.passes_over(split);
      if (epoch >= all.size()) return epochs;
      // The last thing of a rank that did not end well may be half a pass.
      const bool ended_well = rank.left_regularly && rank.result.exit.success();
      if (all[epoch] == &rank.passes.back() && !ended_well) return epochs;
      passes.push_back(all[epoch]);
    }
    epochs.push_back(std::move(passes));
  }
}

namespace {

using instrumentation::SamplerRecord;

// The samplers that a rank made with a split's size.
std::vector<const SamplerRecord*> samplers_for(const RunContext& context, size_t rank,
                                               Split split) {
  std::vector<const SamplerRecord*> found;
  for (const auto& sampler : context.run().ranks[rank].samplers) {
    if (sampler.dataset_size == context.size_of(split)) found.push_back(&sampler);
  }
  return found;
}

bool deals_rightly(const RunContext& context, size_t rank, Split split,
                   const SamplerRecord& sampler) {
  return sampler.num_replicas == context.world() && sampler.rank == rank &&
         (split == Split::train ? sampler.shuffle == 1
                                : sampler.pad == 0 && sampler.drop_last == 0);
}

SamplerProblem problem_of(const RunContext& context, size_t rank, const SamplerRecord& sampler) {
  const auto problem = [&](const char* variant) {
    return SamplerProblem{variant,
                          {variant,
                           {{"rank", rank},
                            {"samples", sampler.dataset_size},
                            {"other", sampler.rank},
                            {"replicas", sampler.num_replicas}}}};
  };
  if (sampler.num_replicas != context.world() || sampler.rank != rank)
    return problem("other_ranks");
  if (sampler.pad == 1) return problem("pads");
  return problem(sampler.drop_last == 1 ? "drops" : "unshuffled");
}

}  // namespace

bool right_sampler(const RunContext& context, Split split) {
  std::optional<uint64_t> seed;
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto made = samplers_for(context, rank, split);
    const auto found = std::ranges::find_if(made, [&](const SamplerRecord* sampler) {
      return deals_rightly(context, rank, split, *sampler);
    });
    if (found == made.end()) return false;
    if (split == Split::train && seed && *seed != (*found)->seed) return false;
    seed = (*found)->seed;
  }
  return true;
}

std::optional<SamplerProblem> sampler_problem(const RunContext& context, Split split) {
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto made = samplers_for(context, rank, split);
    const bool right = std::ranges::any_of(made, [&](const SamplerRecord* sampler) {
      return deals_rightly(context, rank, split, *sampler);
    });
    if (!right && !made.empty()) return problem_of(context, rank, *made.front());
  }
  return std::nullopt;
}

bool any_after_shutdown(const RankSeen& rank, const std::vector<size_t>& events) {
  return rank.shutdown_event && !events.empty() && events.back() > *rank.shutdown_event;
}

std::string sampler_or_loader(const RunContext& context, Split split) {
  return (right_sampler(context, split) ? "loader." : "sampler.") + name_of(split);
}

}  // namespace checker::rules
