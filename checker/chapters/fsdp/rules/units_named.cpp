// Units that FullyShardedDataParallel refused.
#include "judge/departure.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

void units_named(const RunContext& context, Symptoms& symptoms);

void units_named(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::units) || context.run().result.success()) return;
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto words = last_words(context.run().ranks[rank]);
    if (words.find("of the units is") == words.npos) continue;
    symptoms.push_back({.id = "units_not_named",
                        .values = context.values(),
                        .evidence = {{"it_said_of_units", {{"rank", rank}, {"words", words}}}}});
    return;
  }
}

}  // namespace checker::rules
