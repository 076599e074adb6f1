#include <algorithm>

#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

bool member(const RankSeen& rank, uint32_t number, size_t world) {
  return std::ranges::any_of(rank.groups, [&](const GroupSeen& group) {
    return group.size == world && group.rank == number;
  });
}

// Left before the work began: then the processes are strangers again.
bool left_at_once(const RankSeen& rank, uint32_t number, size_t world) {
  if (rank.passes.empty()) return false;
  const size_t work = rank.passes.front().batches.front().event;
  return std::ranges::none_of(rank.groups, [&](const GroupSeen& group) {
    return group.size == world && group.rank == number &&
           (!group.shut_down || *group.shut_down > work);
  });
}

void stays_member(const Scene& scene, Symptoms& symptoms) {
  std::vector<size_t> gone;
  for (size_t rank = 0; rank < scene.world(); ++rank) {
    if (left_at_once(scene.run().ranks[rank], static_cast<uint32_t>(rank), scene.world())) {
      gone.push_back(rank);
    }
  }
  if (gone.empty()) return;
  symptoms.push_back({.id = "group_left_before_the_work",
                      .values = scene.values(),
                      .evidence = {{"left", {{"ranks", ranks_value(gone)}}}}});
}

EvidenceLine groups_of(const RankSeen& rank) {
  std::string groups;
  for (const auto& group : rank.groups) {
    groups += (groups.empty() ? "" : "; ") + ("rank " + std::to_string(group.rank)) + " of " +
              std::to_string(group.size);
  }
  return {groups.empty() ? "none" : "groups", {{"rank", rank.place.rank}, {"groups", groups}}};
}

// On GPUs each rank works on one of its own, whatever the launcher's numbers.
void own_device(const Scene& scene, Symptoms& symptoms) {
  for (size_t a = 0; a < scene.world(); ++a) {
    for (size_t b = a + 1; b < scene.world(); ++b) {
      const auto &mine = scene.run().ranks[a].devices, &theirs = scene.run().ranks[b].devices;
      if (mine.empty() || theirs.empty() || mine.back() != theirs.back()) continue;
      if (!mine.back().starts_with("cuda")) continue;
      symptoms.push_back({.id = "ranks_share_a_gpu",
                          .evidence = {{"device", {{"a", a}, {"b", b}, {"device", mine.back()}}}}});
      return;
    }
  }
}

}  // namespace

void membership(const Scene& scene, Symptoms& symptoms) {
  if (!scene.expects(feature::setup)) return;
  Symptom symptom{.values = scene.values()};
  bool none = true;
  for (size_t rank = 0; rank < scene.world(); ++rank) {
    const auto& seen = scene.run().ranks[rank];
    if (member(seen, static_cast<uint32_t>(rank), scene.world())) continue;
    symptom.evidence.push_back(groups_of(seen));
    none = none && seen.groups.empty();
  }
  if (symptom.evidence.empty()) {
    stays_member(scene, symptoms);
    return own_device(scene, symptoms);
  }
  // A process that dies before it joins has a better reason than that it did not join.
  const bool died = std::ranges::any_of(scene.run().ranks, [](const RankSeen& rank) {
    return !rank.result.exit.success() && !rank.result.ended_by_us;
  });
  if (none && died) return;
  if (none && symptom.evidence.size() == scene.world()) {
    symptom.id = "no_process_group";
    symptom.kind = FindingKind::not_started;
  } else {
    symptom.id = none ? "setup_not_on_all_ranks" : "wrong_place_in_group";
  }
  symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
