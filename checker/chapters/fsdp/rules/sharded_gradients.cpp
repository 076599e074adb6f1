// Gradients are those of the batch, unless the model trained while its parameters were summoned:
// then they are not even made, and it is said why.
#include <optional>

#include "judge/rules/rules.hpp"

namespace checker::rules {

void sharded_gradients(const RunContext& context, Symptoms& symptoms);

namespace {

// The first training step of a rank that gathers before other steps and not before this one.
std::optional<size_t> step_without_gathers(const RankSeen& rank) {
  std::optional<size_t> first;
  bool any = false;
  size_t from = 0;
  for (size_t step = 0; step < rank.steps.size(); ++step) {
    bool gathers = false;
    for (const auto& seen : rank.collectives) {
      gathers = gathers ||
                (seen.event > from && seen.event < rank.steps[step].event && !seen.unit.empty());
    }
    any = any || gathers;
    if (!gathers && !first) first = step;
    from = rank.steps[step].event;
  }
  return any ? first : std::nullopt;
}

}  // namespace

void sharded_gradients(const RunContext& context, Symptoms& symptoms) {
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto& seen = context.run().ranks[rank];
    const auto step = seen.in_pieces ? step_without_gathers(seen) : std::nullopt;
    if (!step) continue;
    symptoms.push_back({.id = "whole_while_training",
                        .values = context.values(),
                        .evidence = {{"not_gathered", {{"rank", rank}, {"step", *step + 1}}}}});
    return;
  }
  gradients(context, symptoms);
}

}  // namespace checker::rules
