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

bool lacks(const RunContext& context, const RankSeen& rank, Split split) {
  const size_t passes = rank.passes_over(split).size();
  if (split == Split::test) return passes != 1;
  return passes != context.plan.epochs ||
         (split == Split::train && rank.steps.size() != training_batches(rank));
}

constexpr Split kSplits[] = {Split::train, Split::validation, Split::test};

bool is_whole(const RunContext& context, const RankSeen& rank) {
  return rank.left_regularly &&
         std::ranges::none_of(kSplits, [&](Split split) { return lacks(context, rank, split); });
}

// The first thing that is missing tells how far the program came.
std::string blame(const RunContext& context) {
  for (const auto split : kSplits) {
    const bool lacking = std::ranges::any_of(
        context.run().ranks, [&](const RankSeen& rank) { return lacks(context, rank, split); });
    if (lacking) return "cut_short." + name_of(split);
  }
  return "cut_short";
}

}  // namespace

void whole(const RunContext& context, Symptoms& symptoms) {
  if (!context.run().result.success()) return;
  Symptom symptom{.id = "cut_short", .values = context.values()};
  symptom.values["epochs"] = context.plan.epochs;
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto& seen = context.run().ranks[rank];
    if (!is_whole(context, seen)) symptom.evidence.push_back(work_of(seen, rank));
  }
  if (symptom.evidence.empty()) return;
  symptom.blame = {blame(context)};
  symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
