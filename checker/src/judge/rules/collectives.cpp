#include "judge/collectives.hpp"
#include "judge/phases.hpp"

#include "judge/rules/rules.hpp"

namespace checker::rules {

void collectives(const RunContext& context, Symptoms& symptoms) {
  if (context.world() < 2 || !context.run().result.success()) return;  // else it is trouble
  const auto mismatch = find_mismatch(context.run(), context.ended_well());
  if (!mismatch) return;
  const auto& a = context.run().ranks[mismatch->rank_a];
  const bool missing = mismatch->b == nullptr;
  auto values = context.values();
  values["number"] = mismatch->sequence + 1;
  values["group"] = mismatch->group;
  if (!missing) values["difference"] = difference(*mismatch->a, *mismatch->b);
  Symptom symptom{.id = missing ? "collective_not_on_all_ranks" : "collectives_differ",
                  .values = values,
                  .evidence = seen_of(context, *mismatch),
                  .blame = {name_of(phase_at(a, mismatch->a->event))},
                  .where = context.locate(a, *mismatch->a)};
  symptom.evidence.insert(symptom.evidence.begin(), {"which_collective", {}});
  symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
