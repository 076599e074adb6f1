#include <algorithm>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

std::string calls_in_words(const RankSeen& rank) {
  if (rank.epochs_set.empty()) return "set_epoch was never called";
  std::string text = "set_epoch was called with";
  for (size_t i = 0; i < std::min<size_t>(rank.epochs_set.size(), 6); ++i) {
    text += (i > 0 ? ", " : " ") + std::to_string(rank.epochs_set[i].epoch);
  }
  return text;
}

}  // namespace

void epochs(const Scene& scene, Findings& findings) {
  if (!scene.expects(feature::set_epoch)) return;
  const auto passes = whole_passes(scene, Split::train);
  for (size_t rank = 0; rank < scene.world(); ++rank) {
    for (size_t later = 1; later < passes.size(); ++later) {
      for (size_t earlier = 0; earlier < later; ++earlier) {
        const auto ids = passes[later][rank]->ids();
        if (ids.size() < 4 || ids != passes[earlier][rank]->ids()) continue;
        const auto name = "rank " + std::to_string(rank);
        const bool never = std::ranges::all_of(
            scene.run().ranks, [](const RankSeen& seen) { return seen.epochs_set.empty(); });
        findings.push_back(
            {scene.blame({feature::set_epoch}),
             "same_order_again",
             "The training data comes in the same order in several epochs.",
             "Call train_sampler.set_epoch(epoch) at the start of every epoch, on every rank: the "
             "sampler shuffles with seed + epoch.",
             {name + ", epochs " + std::to_string(earlier + 1) + " and " +
                  std::to_string(later + 1) + ": " + first_few(ids),
              name + ": " + calls_in_words(scene.run().ranks[rank])},
             "",
             never ? FindingKind::not_started : FindingKind::mistake});
        return;
      }
    }
  }
}

}  // namespace checker::rules
