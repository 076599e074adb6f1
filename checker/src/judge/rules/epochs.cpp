#include <algorithm>
#include <set>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

// The samplers for as many samples as the training split has, if only some are.
std::vector<uint64_t> training_samplers(const RunContext& context, const RankSeen& rank) {
  std::vector<uint64_t> numbers;
  for (const auto& sampler : rank.samplers) {
    if (sampler.dataset_size == context.size_of(Split::train)) numbers.push_back(sampler.number);
  }
  return numbers;
}

EvidenceLine calls_of(const RunContext& context, size_t number) {
  constexpr size_t kShown = 6;
  const auto& rank = context.run().ranks[number];
  if (rank.epochs_set.empty()) return {"never_set", {{"rank", number}}};
  const auto of_training = training_samplers(context, rank);
  std::string epochs;
  bool others_only = !of_training.empty();
  std::set<uint64_t> samplers;
  for (size_t i = 0; i < rank.epochs_set.size(); ++i) {
    const auto& set = rank.epochs_set[i];
    samplers.insert(set.sampler);
    others_only = others_only && std::ranges::find(of_training, set.sampler) == of_training.end();
    if (i < kShown) epochs += (i > 0 ? ", " : "") + std::to_string(set.epoch);
  }
  const bool each_another = samplers.size() > 1 && samplers.size() == rank.epochs_set.size();
  return {others_only    ? "set_others"
          : each_another ? "set_each_another"
                         : "set",
          {{"rank", number}, {"epochs", epochs}}};
}

}  // namespace

void epochs(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::set_epoch)) return;
  const auto passes = whole_trainings(context);
  for (size_t rank = 0; rank < context.world(); ++rank) {
    for (size_t later = 1; later < passes.size(); ++later) {
      for (size_t earlier = 0; earlier < later; ++earlier) {
        const auto ids = passes[later][rank]->ids();
        if (ids.size() < 4 || ids != passes[earlier][rank]->ids()) continue;
        const bool never = std::ranges::all_of(
            context.run().ranks, [](const RankSeen& seen) { return seen.epochs_set.empty(); });
        symptoms.push_back({.id = "same_order_again",
                            .evidence = {{"order",
                                          {{"rank", rank},
                                           {"earlier", earlier + 1},
                                           {"later", later + 1},
                                           {"samples", first_few(ids)}}},
                                         calls_of(context, rank)},
                            .kind = never ? FindingKind::not_started : FindingKind::mistake});
        return;
      }
    }
  }
}

}  // namespace checker::rules
