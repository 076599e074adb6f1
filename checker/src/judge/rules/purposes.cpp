#include <algorithm>
#include <optional>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

constexpr const char* kWhy =
    "Each split has a loader of its own, made from that split's data and that split's sampler: one "
    "to train on, one to watch the training with, one for the very end.";

// What each evaluation is meant for is known by where it stands: validations follow the epochs, the
// test comes after all. Null for a pass of which that cannot be said.
std::vector<std::optional<Split>> meant_for(const RankSeen& rank, size_t planned_epochs) {
  const auto evaluates = [](const Pass& pass) {
    return pass.evaluates() || (!pass.trains() && pass.split != Split::train);
  };
  const auto evaluations = static_cast<size_t>(std::ranges::count_if(rank.passes, evaluates));
  const bool all_there = evaluations == planned_epochs + 1;
  std::vector<std::optional<Split>> meant(rank.passes.size());
  size_t epochs = 0, since_epoch = 0;
  for (size_t i = 0; i < rank.passes.size(); ++i) {
    if (rank.passes[i].trains()) {
      meant[i] = Split::train;
      ++epochs;
      since_epoch = 0;
    } else if (evaluates(rank.passes[i])) {
      ++since_epoch;
      // Two of them before the last epoch: who left the loop early goes on to the test.
      if (all_there || (epochs < planned_epochs && since_epoch == 1)) {
        meant[i] = epochs < planned_epochs || since_epoch == 1 ? Split::validation : Split::test;
      }
    }
  }
  return meant;
}

}  // namespace

void purposes(const Scene& scene, Findings& findings) {
  for (size_t number = 0; number < scene.world(); ++number) {
    const auto& rank = scene.run().ranks[number];
    const auto tell = [&](Split meant, Split used) {
      const auto what = name_of(meant);
      findings.push_back(
          {scene.blame({loader_of(meant), feature::samplers, feature::setup}),
           what + "_on_another_split",
           "What should be the " + what + " runs over the " + name_of(used) + " data.",
           kWhy,
           {"rank " + std::to_string(number) + ", " + scene.where()},
           ""});
    };
    const auto meant = meant_for(rank, scene.plan.epochs);
    for (size_t i = 0; i < rank.passes.size(); ++i) {
      if (meant[i] && rank.passes[i].split != *meant[i]) {
        return tell(*meant[i], rank.passes[i].split);
      }
    }
  }
}

}  // namespace checker::rules
