#include "judge/collectives.hpp"

#include <algorithm>
#include <map>

#include "evidence/collective_kinds.hpp"
#include "judge/phases.hpp"

namespace checker {

namespace {

std::string kind_of(const CollectiveSeen& collective) {
  const size_t kind = collective.call.op_type;
  return std::string(kind < kCollectiveNames.size() ? kCollectiveNames.at(kind) : "a collective");
}

bool is(const CollectiveSeen& collective, CollectiveKind kind) {
  return collective.call.op_type == static_cast<uint8_t>(kind);
}

bool point_to_point(const CollectiveSeen& collective) {
  return is(collective, CollectiveKind::send) || is(collective, CollectiveKind::recv) ||
         is(collective, CollectiveKind::recv_any_source);
}

// What makes groups on different ranks the same group.
std::string key_of(const GroupSeen& group) {
  std::string key = group.name + "/" + std::to_string(group.size);
  for (const auto member : group.members) key += "," + std::to_string(member);
  return key;
}

using Calls = std::vector<const CollectiveSeen*>;

std::map<std::string, Calls> calls_by_group(const RankSeen& rank) {
  std::map<std::string, Calls> calls;
  for (const auto& group : rank.groups) {
    if (group.size == 1) continue;
    auto& mine = calls[key_of(group)];
    for (const auto& collective : rank.collectives) {
      if (collective.call.group == group.number && !point_to_point(collective)) {
        mine.push_back(&collective);
      }
    }
  }
  return calls;
}

// Tensors of the model may travel one by one, all as one, or as neighbours in a bucket.
bool are_neighbours(const std::vector<TensorSeen>& model, bool buffers,
                    const CollectiveSeen& collective) {
  std::vector<uint64_t> sizes;
  for (const auto& tensor : model) {
    if (tensor.scalar_type != collective.call.scalar_type || (tensor.buffer && !buffers)) continue;
    sizes.push_back(tensor.elements);
  }
  for (size_t first = 0; first < sizes.size(); ++first) {
    uint64_t sum = 0;
    for (size_t last = first; last < sizes.size() && sum < collective.call.elements; ++last) {
      sum += sizes[last];
      if (sum == collective.call.elements) return true;
    }
  }
  return false;
}

// What the main thread did when it issued the collective.
instrumentation::Phase marked_phase(const RankSeen& rank, const CollectiveSeen& collective) {
  auto phase = instrumentation::Phase::none;
  for (const auto& seen : rank.phases) {
    if (seen.event < collective.event) phase = seen.mark.phase;
  }
  return phase;
}

// As large as a loss, or a loss and a count: then its size tells nothing.
constexpr uint64_t kFew = 2;

// What of the model the collective moves, by its size, type and place; empty if it is not known.
std::string of_the_model(const RankSeen& rank, const CollectiveSeen& collective) {
  if (!collective.unit.empty()) {
    const bool gathers = is(collective, CollectiveKind::all_gather_coalesced);
    return std::string(gathers ? "parameters" : "gradients") +
           (collective.unit.starts_with('(') ? " in no unit" : " of " + collective.unit);
  }
  if (collective.call.elements <= kFew) return "";
  if (is(collective, CollectiveKind::all_reduce)) {
    const bool backward = marked_phase(rank, collective) == instrumentation::Phase::backward;
    return backward && are_neighbours(rank.model, false, collective) ? "gradients" : "";
  }
  if (!is(collective, CollectiveKind::broadcast)) return "";
  const bool before_training = rank.phases.empty() || collective.event < rank.phases.front().event;
  return before_training && are_neighbours(rank.model, true, collective) ? "parameters" : "";
}

}  // namespace

std::string describe(const RankSeen& rank, const CollectiveSeen& collective) {
  const auto what = of_the_model(rank, collective);
  const auto call = describe(collective);
  return what.empty() ? call : "the model's " + what + " (" + call + ")";
}

std::string describe(const CollectiveSeen& collective) {
  const auto& call = collective.call;
  std::string text = kind_of(collective);
  if (is(collective, CollectiveKind::barrier)) return text;
  text += " of " + std::to_string(call.elements) + " ";
  text += element_name(call.scalar_type);
  if (call.reduce_op < kReduceOpNames.size()) {
    text += " (" + std::string(kReduceOpNames.at(call.reduce_op)) + ")";
  }
  if (call.root >= 0) {
    const bool from =
        is(collective, CollectiveKind::broadcast) || is(collective, CollectiveKind::recv);
    text += (from ? " from rank " : " to rank ") + std::to_string(call.root);
  }
  return text;
}

EvidenceLine seen_call(const RunContext& context, const char* name, size_t rank,
                       const CollectiveSeen& collective) {
  const auto& seen = context.run().ranks[rank];
  const auto place = context.locate(seen, collective);
  return {place.empty() ? name : std::string(name) + "_at",
          {{"rank", rank}, {"call", describe(seen, collective)}, {"place", place}}};
}

std::vector<EvidenceLine> seen_of(const RunContext& context, const Mismatch& mismatch) {
  std::vector<EvidenceLine> lines{seen_call(context, "called", mismatch.rank_a, *mismatch.a)};
  if (mismatch.b) {
    lines.push_back(seen_call(context, "called", mismatch.rank_b, *mismatch.b));
  } else {
    lines.push_back({"called_nothing", {{"rank", mismatch.rank_b}}});
  }
  return lines;
}

std::string difference(const CollectiveSeen& a, const CollectiveSeen& b) {
  if (kind_of(a) != kind_of(b)) return "kind";
  if (a.call.root != b.call.root) return "root";
  if (is(a, CollectiveKind::barrier)) return "";
  if (a.call.elements != b.call.elements) return "size";
  if (a.call.scalar_type != b.call.scalar_type) return "type";
  if (a.call.reduce_op != b.call.reduce_op) return "reduce op";
  return "";
}

namespace {

// The first collective of a group for which `apart` is true of two ranks and their calls.
template <class Apart>
std::optional<Mismatch> first_apart(const Run& run, bool counts, Apart apart) {
  std::vector<std::map<std::string, Calls>> all;
  for (const auto& rank : run.ranks) all.push_back(calls_by_group(rank));
  for (size_t a = 0; a < all.size(); ++a) {
    for (const auto& [key, mine] : all[a]) {
      for (size_t b = 0; b < all.size(); ++b) {
        const auto found = all[b].find(key);
        if (b == a || found == all[b].end()) continue;
        const auto& theirs = found->second;
        const auto group = key.substr(0, key.find('/'));
        for (size_t i = 0; i < std::min(mine.size(), theirs.size()); ++i) {
          if (!apart(run.ranks[a], *mine[i], run.ranks[b], *theirs[i])) continue;
          return Mismatch{group, i, a, b, mine[i], theirs[i]};
        }
        if (counts && mine.size() > theirs.size()) {
          return Mismatch{group, theirs.size(), a, b, mine[theirs.size()], nullptr};
        }
      }
    }
  }
  return std::nullopt;
}

bool evaluates(const RankSeen& rank, const CollectiveSeen& collective) {
  return phase_at(rank, collective.event) == Phase::evaluating;
}

}  // namespace

std::optional<Mismatch> find_mismatch(const Run& run, bool counts) {
  return first_apart(run, counts,
                     [](const RankSeen&, const CollectiveSeen& a, const RankSeen&,
                        const CollectiveSeen& b) { return !difference(a, b).empty(); });
}

std::optional<Mismatch> find_parting(const Run& run) {
  return first_apart(
      run, false,
      [](const RankSeen& rank_a, const CollectiveSeen& a, const RankSeen& rank_b,
         const CollectiveSeen& b) { return evaluates(rank_a, a) != evaluates(rank_b, b); });
}

const CollectiveSeen* not_awaited(const RankSeen& rank, size_t before) {
  const auto found = std::ranges::find_if(rank.collectives, [&](const CollectiveSeen& collective) {
    return collective.event < before && !collective.waited_from && !collective.may_wait_unseen;
  });
  return found == rank.collectives.end() ? nullptr : &*found;
}

const CollectiveSeen* waiting_in(const RankSeen& rank) {
  const CollectiveSeen* last = nullptr;
  for (size_t i = rank.collectives.size(); i-- > 0;) {
    const auto& collective = rank.collectives[i];
    // One that failed because another rank was gone is one that was waited in as well.
    const bool ended = collective.completed && !collective.failed;
    // A unit may be gathered ahead of the one that is waited for.
    if (last && (ended || collective.unit.empty())) return last;
    if (ended || collective.call.group >= rank.groups.size()) continue;
    last = &collective;
    if (collective.unit.empty()) return last;
  }
  return last;
}

}  // namespace checker
