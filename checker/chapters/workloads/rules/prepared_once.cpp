// On each node one rank prepares the data, and the others find them.
#include <algorithm>
#include <map>

#include "judge/rules/rules.hpp"

namespace checker::rules {

void prepared_once(const RunContext& context, Symptoms& symptoms);

namespace {

// What is prepared, and where.
using Prepared = std::pair<size_t, std::string>;

std::map<Prepared, std::vector<size_t>> ranks_that_prepare(const Run& run) {
  std::map<Prepared, std::vector<size_t>> makers;
  for (const auto& rank : run.ranks) {
    for (const auto& preparation : rank.preparations) {
      if (!preparation.makes) continue;
      auto& ranks = makers[{rank.place.node, preparation.name}];
      if (ranks.empty() || ranks.back() != rank.place.rank) ranks.push_back(rank.place.rank);
    }
  }
  return makers;
}

}  // namespace

void prepared_once(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects("RANK0_FIRST")) return;
  Symptom symptom{.id = "prepared_by_several_ranks",
                  .values = context.values(),
                  .kind = FindingKind::not_started};
  const auto all = ranks_that_prepare(context.run());
  for (const auto& [what, ranks] : all) {
    if (ranks.size() < 2) continue;
    symptom.evidence.push_back({"at_once", {{"ranks", ranks_value(ranks)}, {"node", what.first}}});
    // As given, every rank of the node prepares them.
    const auto on_node = std::ranges::count(context.run().ranks, what.first,
                                            [](const auto& rank) { return rank.place.node; });
    if (static_cast<size_t>(on_node) != ranks.size()) symptom.kind = FindingKind::mistake;
  }
  if (!symptom.evidence.empty()) symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
