// Each rank keeps a share of the model, and together they keep all of it once. Where a piece lies
// is told by its first values, so nobody need say how the model is cut.
#include <algorithm>

#include "judge/rules/rules.hpp"

namespace checker::rules {

void sharding(const RunContext& context, Symptoms& symptoms);

namespace {

// In the unchanged step nothing is gathered and no rank holds pieces.
bool does_nothing_about_it(const Run& run) {
  return std::ranges::none_of(run.ranks, [](const RankSeen& rank) {
    return rank.in_pieces || std::ranges::any_of(rank.collectives, [](const CollectiveSeen& seen) {
             return !seen.unit.empty();
           });
  });
}

// Of the ranks that train, those whose optimizers hold all of the model.
std::vector<size_t> whole_ranks(const RunContext& context) {
  std::vector<size_t> ranks;
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto& seen = context.run().ranks[rank];
    if (!seen.in_pieces && !seen.steps.empty()) ranks.push_back(rank);
  }
  return ranks;
}

Symptom of(const RunContext& context, std::string id, EvidenceLine line) {
  return {.id = std::move(id), .values = context.values(), .evidence = {std::move(line)}};
}

void look_at(const RunContext& context, const Cover& cover, Symptoms& symptoms) {
  for (size_t rank = 0; rank < cover.unknown.size(); ++rank) {
    if (cover.unknown[rank] == 0) continue;
    symptoms.push_back(of(context, "pieces_unknown",
                          {"unknown", {{"rank", rank}, {"elements", cover.unknown[rank]}}}));
    return;
  }
  const Value elements(cover.elements);
  if (cover.nowhere > 0) {
    symptoms.push_back(
        of(context, "pieces_missing",
           {"nowhere",
            {{"missing", cover.nowhere}, {"elements", elements}, {"name", cover.names.front()}}}));
  } else if (cover.everywhere == cover.elements) {
    symptoms.push_back(of(context, "nothing_sharded", {"all", {{"elements", elements}}}));
  } else if (cover.once < cover.elements) {
    symptoms.push_back(
        of(context, "pieces_overlap",
           {"several", {{"several", cover.elements - cover.once}, {"elements", elements}}}));
  }
}

}  // namespace

void sharding(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::fsdp) || context.world() == 1) return;
  if (const auto whole = whole_ranks(context); !whole.empty()) {
    auto symptom = of(context, "nothing_sharded", {"whole", {{"ranks", ranks_value(whole)}}});
    if (does_nothing_about_it(context.run())) symptom.kind = FindingKind::not_started;
    symptoms.push_back(std::move(symptom));
  } else if (context.truth.cover) {
    look_at(context, *context.truth.cover, symptoms);
  }
}

}  // namespace checker::rules
