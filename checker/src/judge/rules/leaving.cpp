#include <algorithm>

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
void nothing_after_leaving(const RunContext& context, Symptoms& symptoms) {
  std::vector<size_t> ranks;
  bool printed = false, saved = false;
  for (size_t number = 1; number < context.world(); ++number) {
    const auto& rank = context.run().ranks[number];
    const bool prints = any_after_shutdown(rank, rank.prints),
               saves = any_after_shutdown(rank, rank.saves);
    if (prints || saves) ranks.push_back(number);
    printed = printed || prints;
    saved = saved || saves;
  }
  if (ranks.empty()) return;
  const char* what = printed && saved ? "both" : printed ? "printed" : "wrote";
  symptoms.push_back({.id = "work_after_leaving",
                      .values = context.values(),
                      .evidence = {{what, {{"ranks", ranks_value(ranks)}}}}});
}

}  // namespace

void leaving(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::destroy)) return;
  nothing_after_leaving(context, symptoms);
  if (!context.ended_well()) return;
  std::vector<size_t> open;
  for (size_t rank = 0; rank < context.world(); ++rank) {
    if (left_open(context.run().ranks[rank])) open.push_back(rank);
  }
  if (open.empty()) return;
  const bool all = open.size() == context.world();
  auto values = context.values();
  values["ranks"] = ranks_value(open);
  Symptom symptom{.id = all ? "never_destroyed" : "not_destroyed_on_all_ranks",
                  .values = values,
                  .evidence = {{"open", {}}},
                  .kind = all ? FindingKind::not_started : FindingKind::mistake};
  symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
