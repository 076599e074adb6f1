#include <algorithm>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

EvidenceLine work_of(const RankSeen& rank, size_t number) {
  return {rank.left_regularly ? "did" : "did_and_left",
          {{"rank", number},
           {"training", rank.passes_over(Split::train).size()},
           {"validation", rank.passes_over(Split::validation).size()},
           {"test", rank.passes_over(Split::test).size()},
           {"steps", rank.steps.size()}}};
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
std::string blame(const Scene& scene) {
  for (const auto split : kSplits) {
    const bool lacking = std::ranges::any_of(
        scene.run().ranks, [&](const RankSeen& rank) { return lacks(scene, rank, split); });
    if (lacking) return "cut_short." + name_of(split);
  }
  return "cut_short";
}

}  // namespace

void whole(const Scene& scene, Symptoms& symptoms) {
  if (!scene.run().result.success()) return;
  Symptom symptom{.id = "cut_short", .values = scene.values()};
  symptom.values["epochs"] = scene.plan.epochs;
  for (size_t rank = 0; rank < scene.world(); ++rank) {
    const auto& seen = scene.run().ranks[rank];
    if (!is_whole(scene, seen)) symptom.evidence.push_back(work_of(seen, rank));
  }
  if (symptom.evidence.empty()) return;
  symptom.blame = {blame(scene)};
  symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
