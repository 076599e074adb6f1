#include <algorithm>

#include "judge/departure.hpp"
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
  if (rank.passes.empty()) return worked_after_leaving(rank);
  const size_t work = rank.passes.front().batches.front().event;
  return std::ranges::none_of(rank.groups, [&](const GroupSeen& group) {
    return group.size == world && group.rank == number &&
           (!group.shut_down || *group.shut_down > work);
  });
}

void stays_member(const RunContext& context, Symptoms& symptoms) {
  std::vector<size_t> gone;
  for (size_t rank = 0; rank < context.world(); ++rank) {
    if (left_at_once(context.run().ranks[rank], static_cast<uint32_t>(rank), context.world())) {
      gone.push_back(rank);
    }
  }
  if (gone.empty()) return;
  symptoms.push_back({.id = "group_left_before_the_work",
                      .values = context.values(),
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

// Progress asks the process group how many ranks share the work. Made before setup(), it plans for
// one rank: too many steps, and learning rates that follow from them.
void plans_for_the_world(const RunContext& context, Symptoms& symptoms) {
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto planned = context.run().ranks[rank].planned_world;
    if (!planned || *planned == context.world()) continue;
    auto values = context.values();
    values["planned"] = *planned;
    symptoms.push_back({.id = "setup_too_late",
                        .values = values,
                        .evidence = {{"planned_for", {{"rank", rank}}}}});
    return;
  }
}

// setup() picks a GPU of the rank's own, unless it is told the number of one.
bool got_its_own(const RankSeen& rank) {
  return !rank.setups.empty() && rank.setups.back().device.find(':') == std::string::npos;
}

// On GPUs each rank works on one of its own, whatever the launcher's numbers.
void own_device(const RunContext& context, Symptoms& symptoms) {
  for (size_t a = 0; a < context.world(); ++a) {
    for (size_t b = a + 1; b < context.world(); ++b) {
      const auto &mine = context.run().ranks[a].devices, &theirs = context.run().ranks[b].devices;
      if (mine.empty() || theirs.empty() || mine.back() != theirs.back()) continue;
      if (!mine.back().starts_with("cuda")) continue;
      Symptom symptom{.id = "ranks_share_a_gpu",
                      .evidence = {{"device", {{"a", a}, {"b", b}, {"device", mine.back()}}}}};
      if (got_its_own(context.run().ranks[a]) && got_its_own(context.run().ranks[b])) {
        symptom.variant = "picked_by_hand";
        symptom.blame = {"ranks_share_a_gpu.picked_by_hand"};
        symptom.kind = FindingKind::not_started;
      }
      symptoms.push_back(std::move(symptom));
      return;
    }
  }
}

std::string type_of(const std::string& device) { return device.substr(0, device.find(':')); }

// Who makes a group without setup() picks by other ways, and nobody knows by which.
void passes_on_the_choice(const RunContext& context, Symptoms& symptoms) {
  const auto device = context.started_with("--device");
  const auto backend = context.started_with("--backend");
  for (const auto& rank : context.run().ranks) {
    if (rank.setups.empty()) continue;
    const auto& asked = rank.setups.back();
    const bool no_device = type_of(asked.device) != type_of(device) && !device.empty();
    const bool no_backend = asked.backend != backend && !backend.empty();
    if (!no_device && !no_backend) continue;
    auto values = context.values();
    values["missing"] = no_device && no_backend ? "the device and the backend"
                        : no_device             ? "the device"
                                                : "the backend";
    const auto or_none = [](const std::string& asked_for) {
      return asked_for.empty() ? "none" : asked_for;
    };
    symptoms.push_back({.id = "setup_without_the_choice",
                        .values = values,
                        .evidence = {{"chosen", {{"device", device}, {"backend", backend}}},
                                     {"asked",
                                      {{"rank", rank.place.rank},
                                       {"device", or_none(asked.device)},
                                       {"backend", or_none(asked.backend)}}}}});
    return;
  }
}

}  // namespace

void membership(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects(feature::setup)) return;
  Symptom symptom{.values = context.values()};
  bool none = true;
  for (size_t rank = 0; rank < context.world(); ++rank) {
    const auto& seen = context.run().ranks[rank];
    if (member(seen, static_cast<uint32_t>(rank), context.world())) continue;
    symptom.evidence.push_back(groups_of(seen));
    none = none && seen.groups.empty();
  }
  if (symptom.evidence.empty()) {
    stays_member(context, symptoms);
    if (symptoms.empty()) plans_for_the_world(context, symptoms);
    if (symptoms.empty()) passes_on_the_choice(context, symptoms);
    return own_device(context, symptoms);
  }
  // A process that dies before it joins has a better reason than that it did not join.
  const bool died = std::ranges::any_of(context.run().ranks, [](const RankSeen& rank) {
    return !rank.result.exit.success() && !rank.result.ended_by_us;
  });
  if (none && died) return;
  const auto calls_setup = [](const RankSeen& rank) { return !rank.setups.empty(); };
  const bool some_call = std::ranges::any_of(context.run().ranks, calls_setup) &&
                         !std::ranges::all_of(context.run().ranks, calls_setup);
  if (none && !some_call && symptom.evidence.size() == context.world()) {
    symptom.id = "no_process_group";
    symptom.kind = FindingKind::not_started;
  } else {
    symptom.id = none ? "setup_not_on_all_ranks" : "wrong_place_in_group";
  }
  symptoms.push_back(std::move(symptom));
}

}  // namespace checker::rules
