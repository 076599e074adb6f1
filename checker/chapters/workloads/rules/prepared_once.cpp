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

// In the unchanged step every rank prepares them, and none waits for another one before it makes
// its model.
bool is_as_given(const Run& run) {
  return std::ranges::all_of(run.ranks, [](const RankSeen& rank) {
    const auto& events = rank.log.events;
    const auto model = std::ranges::find(events, Kind::model, &Event::kind);
    const bool waits = std::any_of(
        events.begin(), model, [](const Event& event) { return event.kind == Kind::collective; });
    return !waits && std::ranges::any_of(rank.preparations, &PreparationSeen::makes);
  });
}

}  // namespace

void prepared_once(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects("RANK0_FIRST")) return;
  Symptom symptom{
      .id = "prepared_by_several_ranks",
      .values = context.values(),
      .kind = is_as_given(context.run()) ? FindingKind::not_started : FindingKind::mistake};
  const auto all = ranks_that_prepare(context.run());
  for (const auto& [what, ranks] : all) {
    if (ranks.size() < 2) continue;
    symptom.evidence.push_back({"at_once", {{"ranks", ranks_value(ranks)}, {"node", what.first}}});
  }
  if (!symptom.evidence.empty()) symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
