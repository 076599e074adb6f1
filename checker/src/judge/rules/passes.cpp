#include "judge/rules/passes.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace checker::rules {

namespace {

// The last thing of a rank that did not end well may be half a pass.
bool is_whole(const RankSeen& rank, const Pass* pass) {
  const bool ended_well = rank.left_regularly && rank.result.exit.success();
  return ended_well || pass != &rank.passes.back();
}

// Every sample once, over all ranks.
bool deals_out(const std::vector<const Pass*>& passes, uint64_t size) {
  std::set<uint64_t> all;
  size_t taken = 0;
  for (const auto* pass : passes) {
    const auto ids = pass->ids();
    taken += ids.size();
    all.insert(ids.begin(), ids.end());
  }
  return all.size() == size && taken == size;
}

// The `number`th way to take one pass of each rank.
std::vector<const Pass*> combination(const std::vector<std::vector<const Pass*>>& by_rank,
                                     size_t number) {
  std::vector<const Pass*> one;
  for (const auto& passes : by_rank) {
    one.push_back(passes[number % passes.size()]);
    number /= passes.size();
  }
  return one;
}

}  // namespace

std::vector<std::vector<const Pass*>> whole_trainings(const RunContext& context) {
  std::vector<std::vector<const Pass*>> epochs;
  for (size_t epoch = 0;; ++epoch) {
    std::vector<const Pass*> passes;
    for (const auto& rank : context.run().ranks) {
      const auto all = rank.trainings();
      if (epoch >= all.size() || !is_whole(rank, all[epoch])) return epochs;
      passes.push_back(all[epoch]);
    }
    epochs.push_back(std::move(passes));
  }
}

std::vector<std::vector<const Pass*>> evaluations_after(const RunContext& context, Split split,
                                                        size_t epochs) {
  std::vector<std::vector<const Pass*>> by_rank;
  for (const auto& rank : context.run().ranks) {
    auto& mine = by_rank.emplace_back();
    for (const auto* pass : rank.evaluations(split)) {
      if (pass->epoch == epochs && is_whole(rank, pass)) mine.push_back(pass);
    }
  }
  return by_rank;
}

std::vector<const Pass*> best_evaluation(const RunContext& context, Split split, size_t epochs) {
  constexpr size_t kMost = 1000;
  const auto by_rank = evaluations_after(context, split, epochs);
  size_t combinations = by_rank.empty() ? 0 : 1;
  for (const auto& passes : by_rank) combinations *= passes.size();
  if (combinations == 0) return {};
  for (size_t number = 0; number < std::min(combinations, kMost); ++number) {
    auto one = combination(by_rank, number);
    if (deals_out(one, context.size_of(split))) return one;
  }
  return combination(by_rank, 0);
}

size_t batches_without_a_step(const RankSeen& rank, const Pass& pass) {
  const auto idle = static_cast<size_t>(std::ranges::count_if(
      pass.batches, [](const BatchSeen& batch) { return !batch.step.has_value(); }));
  std::map<size_t, size_t> batches_of_step;
  for (const auto* training : rank.trainings()) {
    for (const auto& batch : training->batches) {
      if (batch.step) ++batches_of_step[*batch.step];
    }
  }
  size_t most = 0;
  for (const auto& [step, batches] : batches_of_step) most = std::max(most, batches);
  return &pass == rank.trainings().back() && idle < most ? 0 : idle;
}

namespace {

size_t batches_trained(const RankSeen& rank) {
  size_t batches = 0;
  for (const auto* pass : rank.trainings()) batches += pass->batches.size();
  return batches;
}

}  // namespace

bool reached_the_limit(const RunContext& context, const RankSeen& rank) {
  const size_t limit = context.plan.max_steps;
  return limit > 0 && (batches_trained(rank) == limit || rank.steps.size() == limit);
}

bool passed_the_limit(const RunContext& context, const RankSeen& rank) {
  const size_t limit = context.plan.max_steps;
  return limit > 0 && batches_trained(rank) > limit && rank.steps.size() > limit;
}

size_t epochs_to_train(const RunContext& context, const RankSeen& rank) {
  return reached_the_limit(context, rank) ? rank.trainings().size() : context.plan.epochs;
}

size_t epochs_trained(const RunContext& context) {
  size_t epochs = SIZE_MAX;
  for (const auto& rank : context.run().ranks) {
    const auto trains = std::ranges::count_if(rank.passes, &Pass::training);
    epochs = std::min(epochs, static_cast<size_t>(trains));
  }
  return context.run().ranks.empty() ? 0 : epochs;
}

std::vector<std::vector<const Pass*>> whole_evaluations(const RunContext& context, Split split) {
  std::vector<std::vector<const Pass*>> all;
  const size_t last = epochs_trained(context);
  for (size_t epoch = split == Split::test ? last : 1; epoch <= last; ++epoch) {
    auto passes = best_evaluation(context, split, epoch);
    if (passes.empty()) break;
    all.push_back(std::move(passes));
  }
  return all;
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
  if (sampler.drop_last == 1) return problem("drops");  // then it never pads
  return problem(sampler.pad == 1 ? "pads" : "unshuffled");
}

}  // namespace

namespace {

// Each rank's last sampler, where it shuffles.
std::optional<SamplerProblem> different_seeds(const RunContext& context, Split split) {
  const SamplerRecord* first = nullptr;
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto made = samplers_for(context, rank, split);
    if (made.empty() || made.back()->shuffle == 0) continue;
    if (!first) first = made.back();
    if (made.back()->seed == first->seed) continue;
    return SamplerProblem{"seeds",
                          {"seeds",
                           {{"a", first->rank},
                            {"b", made.back()->rank},
                            {"seed_a", first->seed},
                            {"seed_b", made.back()->seed}}}};
  }
  return std::nullopt;
}

}  // namespace

bool right_sampler(const RunContext& context, Split split) {
  std::optional<uint64_t> seed;
  bool any = false;
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto made = samplers_for(context, rank, split);
    // Another rank failed before this one came to its samplers.
    if (made.empty() && context.run().ranks[rank].result.ended_by_us) continue;
    const auto found = std::ranges::find_if(made, [&](const SamplerRecord* sampler) {
      return deals_rightly(context, rank, split, *sampler);
    });
    if (found == made.end()) return false;
    any = true;
    if ((*found)->shuffle == 0) continue;
    if (seed && *seed != (*found)->seed) return false;
    seed = (*found)->seed;
  }
  return any;
}

std::optional<SamplerProblem> sampler_problem(const RunContext& context, Split split) {
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto made = samplers_for(context, rank, split);
    const bool right = std::ranges::any_of(made, [&](const SamplerRecord* sampler) {
      return deals_rightly(context, rank, split, *sampler);
    });
    if (!right && !made.empty()) return problem_of(context, rank, *made.front());
  }
  return different_seeds(context, split);
}

std::optional<SamplerRecord> padding_sampler(const RunContext& context, Split split) {
  const uint64_t world = context.world();
  if (context.size_of(split) % world == 0) return std::nullopt;
  std::optional<SamplerRecord> padding;
  for (const auto* sampler : samplers_for(context, 0, split)) {
    if (sampler->num_replicas != world) continue;
    if (sampler->pad == 0 || sampler->drop_last == 1) return std::nullopt;
    padding = *sampler;
  }
  return padding;
}

bool deals_unevenly(const RunContext& context, Split split) {
  const uint64_t world = context.world();
  if (context.size_of(split) % world == 0) return false;
  return std::ranges::any_of(samplers_for(context, 0, split), [&](const SamplerRecord* sampler) {
    return sampler->num_replicas == world && sampler->pad == 0 && sampler->drop_last == 0;
  });
}

bool any_after_shutdown(const RankSeen& rank, const std::vector<size_t>& events) {
  return rank.shutdown_event && !events.empty() && events.back() > *rank.shutdown_event;
}

bool parameters_change_beside_the_optimizer(const RunContext& context) {
  return std::ranges::any_of(context.truth.ranks, [&](const ExpectedRank& rank) {
    return std::ranges::any_of(
        rank.steps, [&](const StepDeviations& step) { return step.update > context.tolerance(); });
  });
}

std::string sampler_or_loader(const RunContext& context, Split split) {
  return (right_sampler(context, split) ? "loader." : "sampler.") + name_of(split);
}

}  // namespace checker::rules
