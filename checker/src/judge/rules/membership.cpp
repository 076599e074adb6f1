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

void stays_member(const Scene& scene, Findings& findings) {
  std::vector<size_t> gone;
  for (size_t rank = 0; rank < scene.world(); ++rank) {
    if (left_at_once(scene.run().ranks[rank], static_cast<uint32_t>(rank), scene.world())) {
      gone.push_back(rank);
    }
  }
  if (gone.empty()) return;
  findings.push_back({scene.blame({feature::setup}),
                      "group_left_before_the_work",
                      "The process group is destroyed before the training begins.",
                      "Ranks are members as long as they work together: sampler, gradients and "
                      "losses all go through the group. It is destroyed at the very end.",
                      {ranks_in_words(gone) + ", " + scene.where() +
                       ": the group was shut down before the first batch"},
                      ""});
}

std::string groups_in_words(const RankSeen& rank) {
  std::string text;
  for (const auto& group : rank.groups) {
    text += (text.empty() ? "" : "; ") + ("rank " + std::to_string(group.rank)) + " of " +
            std::to_string(group.size);
  }
  return text.empty() ? "a member of no group" : text;
}

// On GPUs each rank works on one of its own, whatever the launcher's numbers.
void own_device(const Scene& scene, Findings& findings) {
  for (size_t a = 0; a < scene.world(); ++a) {
    for (size_t b = a + 1; b < scene.world(); ++b) {
      const auto &mine = scene.run().ranks[a].devices, &theirs = scene.run().ranks[b].devices;
      if (mine.empty() || theirs.empty() || mine.back() != theirs.back()) continue;
      if (!mine.back().starts_with("cuda")) continue;
      findings.push_back(
          {scene.blame({feature::setup}),
           "ranks_share_a_gpu",
           "Two ranks work on the same GPU.",
           "setup() gives each rank a device of its own: use that one, not one picked "
           "by hand.",
           {"ranks " + std::to_string(a) + " and " + std::to_string(b) +
            " both moved their batches to " + mine.back()},
           ""});
      return;
    }
  }
}

}  // namespace

void membership(const Scene& scene, Findings& findings) {
  if (!scene.expects(feature::setup)) return;
  std::vector<std::string> evidence;
  bool none = true;
  for (size_t rank = 0; rank < scene.world(); ++rank) {
    const auto& seen = scene.run().ranks[rank];
    if (member(seen, static_cast<uint32_t>(rank), scene.world())) continue;
    evidence.push_back("process " + std::to_string(rank) + " of " + std::to_string(scene.world()) +
                       ": " + groups_in_words(seen));
    none = none && seen.groups.empty();
  }
  if (evidence.empty()) {
    stays_member(scene, findings);
    return own_device(scene, findings);
  }
  // A process that dies before it joins has a better reason than that it did not join.
  const bool died = std::ranges::any_of(scene.run().ranks, [](const RankSeen& rank) {
    return !rank.result.exit.success() && !rank.result.ended_by_us;
  });
  if (none && died) return;
  const int todo = scene.blame({feature::setup});
  if (none && evidence.size() == scene.world()) {
    findings.push_back(
        {todo, "no_process_group",
         "No rank joins a process group: the processes do not know each other.",
         "setup() reads what the launcher left in the environment, connects the "
         "processes and returns rank, local rank, world size and device. Call it once, "
         "near the beginning, on every rank.",
         evidence, "", FindingKind::not_started});
  } else if (none) {
    findings.push_back(
        {todo, "setup_not_on_all_ranks", "Some ranks never join the process group.",
         "Joining takes all ranks: the others wait for those that never call setup().", evidence,
         ""});
  } else {
    findings.push_back(
        {todo, "wrong_place_in_group", "The process group is not what the launcher asked for.",
         "A process's rank in the group must be the launcher's RANK (not LOCAL_RANK, "
         "which counts anew on every node), and its size WORLD_SIZE. setup() does this.",
         evidence, ""});
  }
}

}  // namespace checker::rules
