#include "judge/collectives.hpp"

#include "judge/rules/rules.hpp"

namespace checker::rules {

void collectives(const Scene& scene, Findings& findings) {
  if (scene.world() < 2 || !scene.run().result.success()) return;  // else it is trouble
  const auto mismatch = find_mismatch(scene.run(), scene.ended_well());
  if (!mismatch) return;
  const auto& a = scene.run().ranks[mismatch->rank_a];
  const auto phase = phase_at(a, mismatch->a->event);
  auto evidence = in_words(scene, *mismatch);
  evidence.insert(evidence.begin(), "collective " + std::to_string(mismatch->sequence + 1) +
                                        " of group " + mismatch->group + ", " + scene.where());
  const bool missing = mismatch->b == nullptr;
  findings.push_back(
      {blame_for(scene, phase), missing ? "collective_not_on_all_ranks" : "collectives_differ",
       missing ? "Not all ranks take part in a collective."
               : "Ranks meet in collectives that differ in their " +
                     difference(*mismatch->a, *mismatch->b) + ".",
       missing ? "Every rank of a group must issue the same collectives, equally often."
               : "Every rank of a group must issue the same collective: kind, size, type, reduce "
                 "op and "
                 "root. Gloo does not notice all differences and then gives wrong numbers.",
       std::move(evidence), scene.locate(a, *mismatch->a)});
}

}  // namespace checker::rules
