#include "judge/collectives.hpp"

#include "judge/rules/rules.hpp"

namespace checker::rules {

void collectives(const Scene& scene, Symptoms& symptoms) {
  if (scene.world() < 2 || !scene.run().result.success()) return;  // else it is trouble
  const auto mismatch = find_mismatch(scene.run(), scene.ended_well());
  if (!mismatch) return;
  const auto& a = scene.run().ranks[mismatch->rank_a];
  const bool missing = mismatch->b == nullptr;
  auto values = scene.values();
  values["number"] = mismatch->sequence + 1;
  values["group"] = mismatch->group;
  if (!missing) values["difference"] = difference(*mismatch->a, *mismatch->b);
  Symptom symptom{.id = missing ? "collective_not_on_all_ranks" : "collectives_differ",
                  .values = values,
                  .evidence = seen_of(scene, *mismatch),
                  .blame = {name_of(phase_at(a, mismatch->a->event))},
                  .where = scene.locate(a, *mismatch->a)};
  symptom.evidence.insert(symptom.evidence.begin(), {"which_collective", {}});
  symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
