// An all_reduce in a ring: each rank speaks to its neighbours alone, and none sends more than
// 2 (W - 1) parts of the numbers.
#include <algorithm>
#include <set>

#include "evidence/collective_kinds.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

void ring(const RunContext& context, Symptoms& symptoms);

namespace {

struct Messages {
  std::set<size_t> to, from;
  uint64_t sent = 0;  ///< numbers
};

Messages messages_of(const RankSeen& rank) {
  Messages messages;
  for (const auto& collective : rank.collectives) {
    const auto kind = static_cast<CollectiveKind>(collective.call.op_type);
    const auto peer = static_cast<size_t>(collective.call.root);
    if (kind == CollectiveKind::recv) messages.from.insert(peer);
    if (kind != CollectiveKind::send) continue;
    messages.to.insert(peer);
    messages.sent += collective.call.elements;
  }
  return messages;
}

// Either neighbour: the ring may be gone round in both directions, half of the numbers in each.
bool are_neighbours(const std::set<size_t>& peers, size_t rank, size_t world) {
  return std::ranges::all_of(peers, [&](size_t peer) {
    return peer == (rank + 1) % world || peer == (rank + world - 1) % world;
  });
}

std::string in_words(const std::set<size_t>& peers) {
  return peers.empty() ? "nobody" : ranks_value({peers.begin(), peers.end()}).text;
}

}  // namespace

void ring(const RunContext& context, Symptoms& symptoms) {
  const size_t world = context.world();
  if (!context.expects("C7") || world < 2 || !context.ended_well()) return;
  const uint64_t needed = 2 * (world - 1) * context.step.numbers_a_rank;
  for (const auto& rank : context.run().ranks) {
    const auto messages = messages_of(rank);
    auto values = context.values();
    values["rank"] = rank.place.rank;
    if (!are_neighbours(messages.to, rank.place.rank, world) ||
        !are_neighbours(messages.from, rank.place.rank, world)) {
      symptoms.push_back(
          {.id = "not_a_ring",
           .values = values,
           .evidence = {
               {"peers", {{"to", in_words(messages.to)}, {"from", in_words(messages.from)}}}}});
      return;
    }
    if (messages.sent <= needed) continue;
    symptoms.push_back({.id = "more_than_a_ring",
                        .values = values,
                        .evidence = {{"sent", {{"sent", messages.sent}, {"needed", needed}}}}});
    return;
  }
}

}  // namespace checker::rules
