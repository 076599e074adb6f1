// A rank reads a file that another one wrote: not before it can know that it is written. What a
// rank knows passes on with collectives and messages, from their call on one rank to their end on
// another. No clock is asked, so it does not matter which rank happened to be faster.
#include <algorithm>
#include <limits>

#include "evidence/collective_kinds.hpp"
#include "judge/rules/rules.hpp"

namespace checker::rules {

void read_once_written(const RunContext& context, Symptoms& symptoms);

namespace {

constexpr size_t kNever = std::numeric_limits<size_t>::max();

CollectiveKind kind_of(const CollectiveSeen& call) {
  return static_cast<CollectiveKind>(call.call.op_type);
}

bool is_message(const CollectiveSeen& call) {
  return kind_of(call) == CollectiveKind::send || kind_of(call) == CollectiveKind::recv;
}

// The `number`th call of a rank that passes the test, in the group of all ranks.
template <class Test>
const CollectiveSeen* nth(const RankSeen& rank, size_t number, Test test) {
  for (const auto& call : rank.collectives) {
    if (call.call.group == 0 && test(call) && number-- == 0) return &call;
  }
  return nullptr;
}

template <class Test>
size_t number_of(const RankSeen& rank, const CollectiveSeen& call, Test test) {
  return static_cast<size_t>(std::ranges::count_if(rank.collectives, [&](const auto& other) {
    return other.event < call.event && other.call.group == 0 && test(other);
  }));
}

// What each rank knows: from which place in its log on it knows that the file is written.
class Knowledge {
 public:
  Knowledge(const Run& run, size_t writer, size_t written)
      : run_(run), known_(run.ranks.size(), kNever) {
    known_[writer] = written;
    while (passes_on()) {
    }
  }

  size_t from(size_t rank) const { return known_[rank]; }

 private:
  bool passes_on() {
    bool any = false;
    for (size_t rank = 0; rank < run_.ranks.size(); ++rank) {
      for (const auto& call : run_.ranks[rank].collectives) {
        const size_t end = call.waited_until.value_or(kNever);
        if (call.call.group != 0 || end >= known_[rank] || !tells(rank, call)) continue;
        known_[rank] = end;
        any = true;
      }
    }
    return any;
  }

  // Whether the end of this call tells the rank that some other one, which knew, has come there.
  bool tells(size_t rank, const CollectiveSeen& call) const {
    const auto root = static_cast<size_t>(call.call.root);
    switch (kind_of(call)) {
      case CollectiveKind::send:
        return false;
      case CollectiveKind::recv:
        return root < run_.ranks.size() && knew_when_sending(root, rank, call);
      case CollectiveKind::broadcast:
      case CollectiveKind::scatter:
        return root < run_.ranks.size() && knew_at(root, rank, call);
      case CollectiveKind::reduce:
      case CollectiveKind::gather:
        if (root != rank) return false;
        break;
      default:
        break;
    }
    for (size_t other = 0; other < run_.ranks.size(); ++other) {
      if (knew_at(other, rank, call)) return true;
    }
    return false;
  }

  bool knew_at(size_t other, size_t rank, const CollectiveSeen& call) const {
    const auto collective = [](const CollectiveSeen& one) { return !is_message(one); };
    const auto* theirs =
        nth(run_.ranks[other], number_of(run_.ranks[rank], call, collective), collective);
    return theirs && theirs->event > known_[other] && known_[other] != kNever;
  }

  bool knew_when_sending(size_t sender, size_t rank, const CollectiveSeen& call) const {
    const auto between = [](CollectiveKind kind, size_t peer) {
      return [kind, peer](const CollectiveSeen& one) {
        return kind_of(one) == kind && static_cast<size_t>(one.call.root) == peer;
      };
    };
    const size_t number = number_of(run_.ranks[rank], call, between(CollectiveKind::recv, sender));
    const auto* theirs = nth(run_.ranks[sender], number, between(CollectiveKind::send, rank));
    return theirs && theirs->event > known_[sender] && known_[sender] != kNever;
  }

  const Run& run_;
  std::vector<size_t> known_;
};

// The last time that a rank opened a file to write it, or moved it to its place.
std::optional<size_t> written(const RankSeen& rank) {
  std::optional<size_t> last;
  for (const auto& change : rank.file_changes) {
    if (change.action != instrumentation::FileAction::remove) last = change.event;
  }
  return last;
}

// Who reads in a way of his own has read when he shows what he read.
std::optional<size_t> read_at(const RankSeen& rank) {
  if (rank.first_read || rank.results.empty()) return rank.first_read;
  return rank.results.front().event;
}

}  // namespace

void read_once_written(const RunContext& context, Symptoms& symptoms) {
  if (!context.expects("C8")) return;
  const auto& ranks = context.run().ranks;
  const auto writes = std::ranges::find_if(ranks, [](const auto& rank) { return !!written(rank); });
  // Who read too early may have died before rank 0 wrote, and so the run has ended.
  const bool nobody = writes == ranks.end();
  if (nobody && ranks.front().first_read) return;
  const size_t writer = nobody ? 0 : writes->place.rank;
  const Knowledge knowledge(context.run(), writer, nobody ? kNever : *written(*writes));
  for (const auto& rank : ranks) {
    const auto reads = read_at(rank);
    if (!reads || knowledge.from(rank.place.rank) < *reads) continue;
    auto values = context.values();
    values["rank"] = rank.place.rank;
    values["writer"] = writer;
    symptoms.push_back(
        {.id = "read_too_early", .values = values, .evidence = {{"no_meeting", {}}}});
    return;
  }
}

}  // namespace checker::rules
