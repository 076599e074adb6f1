#include <algorithm>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

EvidenceLine calls_of(const RankSeen& rank, size_t number) {
  if (rank.epochs_set.empty()) return {"never_set", {{"rank", number}}};
  std::string epochs;
  for (size_t i = 0; i < std::min<size_t>(rank.epochs_set.size(), 6); ++i) {
    epochs += (i > 0 ? ", " : "") + std::to_string(rank.epochs_set[i].epoch);
  }
  return {"set", {{"rank", number}, {"epochs", epochs}}};
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
                                         calls_of(context.run().ranks[rank], rank)},
                            .kind = never ? FindingKind::not_started : FindingKind::mistake});
        return;
      }
    }
  }
}

}  // namespace checker::rules
