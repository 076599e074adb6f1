#include <algorithm>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

std::string seen_in_words(const RankSeen& rank) {
  return std::to_string(rank.passes_over(Split::train).size()) + " training epochs, " +
         std::to_string(rank.passes_over(Split::validation).size()) + " validations, " +
         std::to_string(rank.passes_over(Split::test).size()) + " tests, " +
         std::to_string(rank.steps.size()) + " optimizer steps";
}

size_t training_batches(const RankSeen& rank) {
  size_t batches = 0;
  for (const auto* pass : rank.passes_over(Split::train)) batches += pass->batches.size();
  return batches;
}

bool lacks(const Scene& scene, const RankSeen& rank, Split split) {
  const size_t passes = rank.passes_over(split).size();
  if (split == Split::test) return passes != 1;
  return passes != scene.plan.epochs ||
         (split == Split::train && rank.steps.size() != training_batches(rank));
}

constexpr Split kSplits[] = {Split::train, Split::validation, Split::test};

bool is_whole(const Scene& scene, const RankSeen& rank) {
  return rank.left_regularly &&
         std::ranges::none_of(kSplits, [&](Split split) { return lacks(scene, rank, split); });
}

// The first thing that is missing tells how far the program came.
int blame(const Scene& scene) {
  for (const auto split : kSplits) {
    const bool lacking = std::ranges::any_of(
        scene.run().ranks, [&](const RankSeen& rank) { return lacks(scene, rank, split); });
    if (!lacking) continue;
    return scene.blame({loader_of(split),
                        split == Split::train ? feature::ddp : feature::all_reduce,
                        feature::destroy, feature::all_reduce, feature::set_epoch, feature::setup});
  }
  return scene.blame({feature::destroy, feature::all_reduce, feature::set_epoch,
                      feature::test_loader, feature::setup});
}

}  // namespace

void whole(const Scene& scene, Findings& findings) {
  if (!scene.run().result.success()) return;
  std::vector<std::string> evidence;
  for (size_t rank = 0; rank < scene.world(); ++rank) {
    const auto& seen = scene.run().ranks[rank];
    if (is_whole(scene, seen)) continue;
    evidence.push_back("rank " + std::to_string(rank) + ", " + scene.where() + ": " +
                       seen_in_words(seen) +
                       (seen.left_regularly ? "" : "; it left without returning from main"));
  }
  if (evidence.empty()) return;
  findings.push_back({blame(scene), "cut_short", "The program ends before its work is done.",
                      "As given it trains " + std::to_string(scene.plan.epochs) +
                          " epochs here, evaluates after each and tests at the end, on every rank.",
                      evidence, ""});
}

}  // namespace checker::rules
