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

bool any_after_shutdown(const RankSeen& rank, const std::vector<size_t>& events) {
  return rank.shutdown_event && !events.empty() && events.back() > *rank.shutdown_event;
}

std::string_view loader_of(Split split) {
  constexpr std::string_view loaders[] = {feature::training_loader, feature::validation_loader,
                                          feature::test_loader};
  return loaders[static_cast<size_t>(split)];
}

}  // namespace checker::rules
