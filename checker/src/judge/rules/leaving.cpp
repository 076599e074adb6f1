#include <algorithm>

#include "judge/divergence.hpp"
#include "judge/rules/passes.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

namespace {

// A group that the program made with distributed_utils is seen when it is shut down; of others
// nothing is known.
bool left_open(const RankSeen& rank) {
  return std::ranges::any_of(rank.groups, [](const GroupSeen& group) {
    return !group.members.empty() && group.name == "world" && !group.shut_down;
  });
}

// Without a group every process is a rank 0 of its own, and print0 and save0 act on all of them.
void nothing_after_leaving(const Scene& scene, Findings& findings) {
  std::vector<size_t> ranks;
  bool printed = false, saved = false;
  for (size_t number = 1; number < scene.world(); ++number) {
    const auto& rank = scene.run().ranks[number];
    const bool prints = any_after_shutdown(rank, rank.prints),
               saves = any_after_shutdown(rank, rank.saves);
    if (prints || saves) ranks.push_back(number);
    printed = printed || prints;
    saved = saved || saves;
  }
  if (ranks.empty()) return;
  findings.push_back({scene.blame({feature::destroy}),
                      "work_after_leaving",
                      "The process group is destroyed before all work is done.",
                      "Without a group every process is a rank 0 of its own: print0 prints and "
                      "save0 writes on all of them. destroy_process_group() comes last.",
                      {ranks_in_words(ranks) + ", " + scene.where() + ": " +
                       (printed && saved ? "print0 printed and save0 wrote"
                        : printed        ? "print0 printed"
                                         : "save0 wrote") +
                       " after the group was shut down"},
                      ""});
}

}  // namespace

void leaving(const Scene& scene, Findings& findings) {
  if (!scene.expects(feature::destroy)) return;
  nothing_after_leaving(scene, findings);
  if (!scene.ended_well()) return;
  std::vector<size_t> open;
  for (size_t rank = 0; rank < scene.world(); ++rank) {
    if (left_open(scene.run().ranks[rank])) open.push_back(rank);
  }
  if (open.empty()) return;
  const bool all = open.size() == scene.world();
  // Ranks that end before they come to the call may have ended where they should have printed.
  const auto left_out = all ? std::nullopt : first_call_left_out(scene.run());
  findings.push_back(
      {scene.blame({left_out.value_or(feature::destroy)}),
       all ? "never_destroyed" : "not_destroyed_on_all_ranks",
       all ? "The process group is never destroyed."
           : "Not all ranks destroy the process group: " + ranks_in_words(open) +
                 (open.size() > 1 ? " do not." : " does not."),
       "destroy_process_group(), on every rank, as the last thing before the program "
       "ends: only then nobody leaves while others still need it, and NCCL's threads "
       "end in an orderly way.",
       {scene.where() + ": no shutdown seen on " + ranks_in_words(open)},
       "",
       all ? FindingKind::not_started : FindingKind::mistake});
}

}  // namespace checker::rules
