// An all_reduce in a ring: each rank sends to one neighbour and receives from the other, all in the
// same direction, and none sends more than 2 (W - 1) parts of the numbers.
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

// The neighbour's number, so many places further in the ring.
bool only(const std::set<size_t>& peers, size_t rank, size_t further, size_t world) {
  return std::ranges::all_of(peers, [&](size_t peer) { return peer == (rank + further) % world; });
}

std::string in_words(const std::set<size_t>& peers) {
  return peers.empty() ? "nobody" : ranks_value({peers.begin(), peers.end()}).text;
}

// The first rank that does not keep to the direction; nothing if all do.
std::optional<size_t> not_in_direction(const std::vector<Messages>& all, size_t further) {
  const size_t world = all.size();
  for (size_t rank = 0; rank < world; ++rank) {
    if (!only(all[rank].to, rank, further, world) ||
        !only(all[rank].from, rank, world - further, world)) {
      return rank;
    }
  }
  return std::nullopt;
}

}  // namespace

void ring(const RunContext& context, Symptoms& symptoms) {
  const size_t world = context.world();
  if (!context.expects("C7") || world < 2 || !context.ended_well()) return;
  std::vector<Messages> all;
  for (const auto& rank : context.run().ranks) all.push_back(messages_of(rank));
  auto values = context.values();
  const auto to_the_right = not_in_direction(all, 1);
  if (to_the_right && not_in_direction(all, world - 1)) {
    const auto& messages = all[*to_the_right];
    values["rank"] = *to_the_right;
    symptoms.push_back(
        {.id = "not_a_ring",
         .values = values,
         .evidence = {
             {"peers", {{"to", in_words(messages.to)}, {"from", in_words(messages.from)}}}}});
    return;
  }
  const uint64_t needed = 2 * (world - 1) * context.step.numbers_a_rank;
  for (size_t rank = 0; rank < world; ++rank) {
    if (all[rank].sent <= needed) continue;
    values["rank"] = rank;
    symptoms.push_back({.id = "more_than_a_ring",
                        .values = values,
                        .evidence = {{"sent", {{"sent", all[rank].sent}, {"needed", needed}}}}});
    return;
  }
}

}  // namespace checker::rules
