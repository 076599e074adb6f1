#include <algorithm>
#include <set>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

// After how many epochs of training a rank evaluates on a split; of the test, the last one counts.
size_t epochs_evaluated(const RankSeen& rank, Split split) {
  const size_t trained = rank.trainings().size();
  std::set<size_t> epochs;
  for (const auto* pass : rank.evaluations(split)) {
    const bool counts = split == Split::test ? pass->epoch == trained : pass->epoch > 0;
    if (counts) epochs.insert(pass->epoch);
  }
  return epochs.size();
}

EvidenceLine work_of(const RankSeen& rank, size_t number) {
  return {rank.left_regularly ? "did" : "did_and_left",
          {{"rank", number},
           {"training", rank.trainings().size()},
           {"validation", epochs_evaluated(rank, Split::validation)},
           {"test", epochs_evaluated(rank, Split::test)},
           {"steps", rank.steps.size()}}};
}

bool lacks(const RunContext& context, const RankSeen& rank, Split split) {
  if (split == Split::test) return epochs_evaluated(rank, split) == 0;
  if (split == Split::validation)
    return epochs_evaluated(rank, split) != epochs_to_train(context, rank);
  const auto without_step = [&](const Pass* pass) {
    return batches_without_a_step(rank, *pass) > 0;
  };
  const auto passes = rank.trainings();
  return passes.size() != epochs_to_train(context, rank) ||
         std::ranges::any_of(passes, without_step);
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
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto& seen = context.run().ranks[rank];
    if (!passed_the_limit(context, seen)) continue;
    Symptom beyond{.id = "more_steps_than_asked",
                   .values = context.values(),
                   .evidence = {{"beyond", {{"rank", rank}, {"steps", seen.steps.size()}}}},
                   .blame = {"loop"}};
    beyond.values["limit"] = context.plan.max_steps;
    symptoms.push_back(std::move(beyond));
    return;
  }
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
