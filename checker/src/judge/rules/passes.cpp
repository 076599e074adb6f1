#include "judge/rules/passes.hpp"

#include <algorithm>

namespace checker::rules {

std::vector<std::vector<const Pass*>> whole_passes(const Scene& scene, Split split) {
  std::vector<std::vector<const Pass*>> epochs;
  for (size_t epoch = 0;; ++epoch) {
    std::vector<const Pass*> passes;
    for (const auto& rank : scene.run().ranks) {
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

bool right_sampler(const Scene& scene, Split split) {
  const auto& ranks = scene.run().ranks;
  std::optional<uint64_t> seed;
  for (size_t number = 0; number < ranks.size(); ++number) {
    const auto found = std::ranges::find_if(ranks[number].samplers, [&](const auto& sampler) {
      const bool deals = sampler.dataset_size == scene.size_of(split) &&
                         sampler.num_replicas == scene.world() && sampler.rank == number;
      return deals && (split == Split::train ? sampler.shuffle == 1
                                             : sampler.pad == 0 && sampler.drop_last == 0);
    });
    if (found == ranks[number].samplers.end()) return false;
    if (split == Split::train && seed && *seed != found->seed) return false;
    seed = found->seed;
  }
  return true;
}

bool any_sampler(const Scene& scene) {
  return std::ranges::any_of(scene.run().ranks,
                             [](const RankSeen& rank) { return !rank.samplers.empty(); });
}

size_t batch_size(const Scene& scene) {
  size_t most = 1;
  for (const auto& rank : scene.run().ranks) {
    for (const auto* pass : rank.passes_over(Split::train)) {
      for (const auto& batch : pass->batches) most = std::max(most, batch.ids.size());
    }
  }
  return most;
}

}  // namespace checker::rules
