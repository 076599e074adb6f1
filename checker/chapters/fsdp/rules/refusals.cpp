// What FullyShardedDataParallel refused, in its own words: they tell which TODO it is.
#include <array>
#include <string_view>

#include "judge/departure.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

void refusals(const RunContext& context, Symptoms& symptoms);

namespace {

struct Refusal {
  std::string_view words, symptom;
};

constexpr std::array<Refusal, 2> kRefusals{
    {{"of the units is", "units_not_named"},
     {"while summon_full_params() keeps parameters whole", "whole_while_training"}}};

}  // namespace

void refusals(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::fsdp) || context.run().result.success()) return;
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto words = last_words(context.run().ranks[rank]);
    for (const auto& refusal : kRefusals) {
      if (words.find(refusal.words) == words.npos) continue;
      symptoms.push_back({.id = std::string(refusal.symptom),
                          .values = context.values(),
                          .evidence = {{"refused", {{"rank", rank}, {"words", words}}}}});
      return;
    }
  }
}

}  // namespace checker::rules
