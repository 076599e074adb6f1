#include <algorithm>
#include <optional>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

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

void purposes(const RunContext& context, Symptoms& symptoms) {
  for (size_t number = 0; number < context.world(); ++number) {
    const auto& rank = context.run().ranks[number];
    const auto meant = meant_for(rank, context.plan.epochs);
    for (size_t i = 0; i < rank.passes.size(); ++i) {
      if (!meant[i] || rank.passes[i].split == *meant[i]) continue;
      auto values = context.values();
      values["meant"] = name_of(*meant[i]);
      values["used"] = name_of(rank.passes[i].split);
      symptoms.push_back({.id = name_of(*meant[i]) + "_on_another_split",
                          .values = values,
                          .evidence = {{"rank", {{"rank", number}}}}});
      break;
    }
  }
}

}  // namespace checker::rules
