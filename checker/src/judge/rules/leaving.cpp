#include <algorithm>

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

}  // namespace

void leaving(const Scene& scene, Findings& findings) {
  if (!scene.expects(feature::destroy) || !scene.ended_well()) return;
  std::vector<size_t> open;
  for (size_t rank = 0; rank < scene.world(); ++rank) {
    if (left_open(scene.run().ranks[rank])) open.push_back(rank);
  }
  if (open.empty()) return;
  const bool all = open.size() == scene.world();
  findings.push_back(
      {scene.blame({feature::destroy}),
       all ? "never_destroyed" : "not_destroyed_on_all_ranks",
       all ? "The process group is never destroyed."
           : "Not all ranks destroy the process group: " + ranks_in_words(open) +
                 (open.size() > 1 ? " do not." : " does not."),
       "destroy_process_group(), on every rank, as the last thing before the program "
       "ends: only then nobody leaves while others still need it, and NCCL's threads "
       "end in an orderly way.",
       {scene.where() + ": no shutdown seen on " + ranks_in_words(open)},
       ""});
}

}  // namespace checker::rules
