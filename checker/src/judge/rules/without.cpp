// Some exercises forbid collectives: with these the result comes easily, and the lesson does not.
#include <algorithm>

#include "evidence/collective_kinds.hpp"
#include "judge/collectives.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

bool is_named(const Step& step, const CollectiveSeen& collective) {
  const size_t kind = collective.call.op_type;
  return kind < kCollectiveNames.size() &&
         std::ranges::find(step.without, kCollectiveNames.at(kind)) != step.without.end();
}

}  // namespace

void without(const RunContext& context, Symptoms& symptoms) {
  if (context.world() < 2) return;
  // What moves less than the numbers, or than a rank's part of them, is about something else.
  const uint64_t enough = context.step.numbers + context.step.numbers_a_rank;
  for (const auto& rank : context.run().ranks) {
    uint64_t moved = 0;
    for (const auto& collective : rank.collectives) {
      if (!is_named(context.step, collective)) continue;
      moved += collective.call.elements;
      if (moved < enough) continue;
      auto values = context.values();
      values["rank"] = rank.place.rank;
      symptoms.push_back(
          {.id = "does_not_do_without",
           .values = values,
           .evidence = {seen_call(context, "one_of_them", rank.place.rank, collective)},
           .variant = context.step.label(),
           .where = context.locate(rank, collective)});
      return;
    }
  }
}

}  // namespace checker::rules
