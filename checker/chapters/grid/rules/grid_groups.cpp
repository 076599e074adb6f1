// Along each dimension of the mesh every rank is in a group with the ranks whose other coordinates
// are its own.
#include <algorithm>

#include "judge/rules/rules.hpp"

namespace checker::rules {

void grid_groups(const RunContext& context, Symptoms& symptoms);

namespace {

std::vector<size_t> neighbours(const RunContext& context, const RankSeen& rank,
                               const std::string& along) {
  std::vector<size_t> found;
  for (const auto& other : context.run().ranks) {
    auto mine = rank.place.mesh, theirs = other.place.mesh;
    mine.erase(along);
    theirs.erase(along);
    if (mine == theirs) found.push_back(other.place.rank);
  }
  return found;
}

bool has_group(const RankSeen& rank, const std::vector<size_t>& members) {
  return std::ranges::any_of(rank.groups, [&](const GroupSeen& group) {
    return std::ranges::equal(group.members, members);
  });
}

}  // namespace

void grid_groups(const RunContext& context, Symptoms& symptoms) {
  if (!context.run().result.success() || context.run().ranks.empty()) return;
  for (const auto& [dimension, coordinate] : context.run().ranks.front().place.mesh) {
    for (const auto& rank : context.run().ranks) {
      const auto members = neighbours(context, rank, dimension);
      if (has_group(rank, members)) continue;
      symptoms.push_back(
          {.id = "no_group_along",
           .values = {{"dimension", dimension}},
           .evidence = {{"lacks", {{"rank", rank.place.rank}, {"others", ranks_value(members)}}}},
           .blame = {"no_group_along." + dimension}});
      break;
    }
  }
}

}  // namespace checker::rules
