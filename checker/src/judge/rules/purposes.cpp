#include <algorithm>
#include <optional>

#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

// What a rank did for one purpose with another split.
struct Misuse {
  Split meant, used;
};

// A batch that went through the model as in training, but led to no backward().
bool looks_like_training(const RankSeen& rank, const Pass& pass) {
  return std::ranges::all_of(pass.batches, [&](const BatchSeen& batch) {
    return batch.with_gradients && batch.forward && rank.forwards[*batch.forward].training;
  });
}

// The splits that a rank evaluates on after so many epochs, in their order.
std::vector<Split> evaluated_after(const RankSeen& rank, size_t epochs) {
  std::vector<Split> splits;
  for (const auto& pass : rank.passes) {
    if (!pass.training && pass.epoch == epochs && !looks_like_training(rank, pass))
      splits.push_back(pass.split);
  }
  return splits;
}

bool has(const std::vector<Split>& splits, Split split) {
  return std::ranges::find(splits, split) != splits.end();
}

// A validation follows each epoch, and the test comes after the last. A program may evaluate more
// often, on any split; what is missing where another split was evaluated was done on that one. A
// run that `died` may have had the test to come.
std::optional<Misuse> misuse_of(const RankSeen& rank, size_t planned_epochs, bool died) {
  for (const auto& pass : rank.passes) {
    if (pass.training && pass.split != Split::train) return Misuse{Split::train, pass.split};
  }
  for (size_t epoch = 1; epoch <= planned_epochs; ++epoch) {
    const auto splits = evaluated_after(rank, epoch);
    const bool last = epoch == planned_epochs;
    const bool may_be_the_test = last && splits.size() == 1 && splits.front() == Split::test;
    if (!splits.empty() && !has(splits, Split::validation) && !may_be_the_test)
      return Misuse{Split::validation, splits.front()};
    if (!died && last && splits.size() > 1 && !has(splits, Split::test))
      return Misuse{Split::test, splits.back()};
  }
  return std::nullopt;
}

}  // namespace

void purposes(const RunContext& context, Symptoms& symptoms) {
  for (size_t number = 0; number < context.world(); ++number) {
    const auto& rank = context.run().ranks[number];
    const auto misuse =
        misuse_of(rank, epochs_to_train(context, rank), !context.run().result.success());
    if (!misuse) continue;
    auto values = context.values();
    values["meant"] = name_of(misuse->meant);
    values["used"] = name_of(misuse->used);
    symptoms.push_back({.id = name_of(misuse->meant) + "_on_another_split",
                        .values = values,
                        .evidence = {{"rank", {{"rank", number}}}}});
  }
}

}  // namespace checker::rules
