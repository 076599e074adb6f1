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

// Whether two ranks know a group by the same name and members.
bool same(const GroupSeen& a, const GroupSeen& b) {
  return a.name == b.name && a.members == b.members && a.size == b.size;
}

const GroupSeen* group_of(const RankSeen& rank, const CollectiveSeen& call) {
  const auto found = std::ranges::find(rank.groups, call.call.group, &GroupSeen::number);
  return found == rank.groups.end() ? nullptr : &*found;
}

// The rank of the world that a group knows by this number; kNever: nobody knows.
size_t in_the_world(const GroupSeen& group, int32_t number) {
  const auto place = static_cast<size_t>(number);
  if (group.members.empty()) return place;
  return place < group.members.size() ? group.members[place] : kNever;
}

// What is counted on both sides: the calls of a kind in a group, messages by whom they go to.
struct Series {
  const GroupSeen* group;
  CollectiveKind kind;  ///< send or recv; anything else stands for all collectives
  size_t peer = 0;      ///< of messages, in the world

  bool has(const RankSeen& rank, const CollectiveSeen& call) const {
    const auto* own = group_of(rank, call);
    if (!own || !same(*own, *group)) return false;
    const bool message = kind == CollectiveKind::send || kind == CollectiveKind::recv;
    if (!message) return !is_message(call);
    return kind_of(call) == kind && in_the_world(*own, call.call.root) == peer;
  }

  size_t before(const RankSeen& rank, size_t event) const {
    return static_cast<size_t>(std::ranges::count_if(
        rank.collectives, [&](const auto& call) { return call.event < event && has(rank, call); }));
  }

  // The place in the log of the rank's `number`th call; kNever: there is none.
  size_t nth(const RankSeen& rank, size_t number) const {
    for (const auto& call : rank.collectives) {
      if (has(rank, call) && number-- == 0) return call.event;
    }
    return kNever;
  }
};

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
    for (const auto& rank : run_.ranks) {
      auto& known = known_[rank.place.rank];
      for (const auto& call : rank.collectives) {
        const size_t end = call.waited_until.value_or(kNever);
        if (end >= known || !tells(rank, call)) continue;
        known = end;
        any = true;
      }
    }
    return any;
  }

  // Whether the end of this call tells the rank that some other one, which knew, has come there.
  bool tells(const RankSeen& rank, const CollectiveSeen& call) const {
    const auto* group = group_of(rank, call);
    if (!group || kind_of(call) == CollectiveKind::send) return false;
    const size_t root = in_the_world(*group, call.call.root);
    Series theirs{group, kind_of(call)}, ours = theirs;
    switch (kind_of(call)) {
      case CollectiveKind::recv:
        ours.peer = root;
        theirs = {group, CollectiveKind::send, rank.place.rank};
        [[fallthrough]];
      case CollectiveKind::broadcast:
      case CollectiveKind::scatter:
        return knew(root, theirs, ours.before(rank, call.event));
      case CollectiveKind::reduce:
      case CollectiveKind::gather:
        if (root != rank.place.rank) return false;
        break;
      default:
        break;
    }
    for (size_t other = 0; other < run_.ranks.size(); ++other) {
      if (knew(other, theirs, ours.before(rank, call.event))) return true;
    }
    return false;
  }

  // Whether a rank knew when it made this call.
  bool knew(size_t rank, const Series& series, size_t number) const {
    if (rank >= run_.ranks.size() || known_[rank] == kNever) return false;
    const size_t event = series.nth(run_.ranks[rank], number);
    return event != kNever && event > known_[rank];
  }

  const Run& run_;
  std::vector<size_t> known_;
};

// The last time that a rank opened a file to write it, or moved it to its place.
// Null: it wrote none.
const FileChange* written(const RankSeen& rank) {
  const FileChange* last = nullptr;
  for (const auto& change : rank.file_changes) {
    if (change.action != instrumentation::FileAction::remove) last = &change;
  }
  return last;
}

// What the file is called in the end that this rank wrote last; empty: it wrote none.
std::filesystem::path written_file(const RankSeen& rank) {
  const auto* last = written(rank);
  if (!last) return {};
  return last->new_path.empty() ? last->path : last->new_path;
}

// Without it, the rank that happens to be the last one would decide.
void look_for_other_writers(const RunContext& context, size_t writer, Symptoms& symptoms) {
  const auto& ranks = context.run().ranks;
  const auto file = written_file(ranks[writer]);
  std::vector<size_t> others;
  for (const auto& rank : ranks) {
    if (rank.place.rank != writer && written_file(rank) == file) others.push_back(rank.place.rank);
  }
  if (file.empty() || others.empty()) return;
  auto values = context.values();
  values["ranks"] = ranks_value(others);
  values["writer"] = writer;
  symptoms.push_back(
      {.id = "written_by_several_ranks", .values = values, .evidence = {{"world", {}}}});
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
  const auto writes =
      std::ranges::find_if(ranks, [](const auto& rank) { return written(rank) != nullptr; });
  // Who read too early may have died before rank 0 wrote, and so the run has ended.
  const bool nobody = writes == ranks.end();
  if (nobody && ranks.front().first_read) return;
  const size_t writer = nobody ? 0 : writes->place.rank;
  look_for_other_writers(context, writer, symptoms);
  const Knowledge knowledge(context.run(), writer, nobody ? kNever : written(*writes)->event);
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
