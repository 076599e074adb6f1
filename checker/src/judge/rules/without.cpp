// Some exercises name collectives that they do without: with these the result comes easily, and the
// lesson does not.
#include <algorithm>

#include "evidence/collective_kinds.hpp"
#include "judge/collectives.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

void without(const RunContext& context, Symptoms& symptoms) {
  if (context.world() < 2) return;
  const auto& names = context.step.without;
  for (const auto& rank : context.run().ranks) {
    for (const auto& collective : rank.collectives) {
      const size_t kind = collective.call.op_type;
      if (kind >= kCollectiveNames.size()) continue;
      if (std::ranges::find(names, kCollectiveNames.at(kind)) == names.end()) continue;
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
