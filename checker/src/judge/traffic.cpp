#include "judge/traffic.hpp"

#include <algorithm>

namespace checker {

namespace {

// Of one element, whatever its type; counts are of 8 and gradients of 4 or 8.
constexpr uint64_t kElement = 4;

uint64_t least_traffic(const RankSeen& rank) {
  uint64_t bytes = 0;
  for (const auto& group : rank.groups) {
    if (group.rank != 0 || group.size < 2) continue;
    for (const auto& collective : rank.collectives) {
      if (collective.call.group != group.number || !collective.completed) continue;
      // An absurd size is another rule's business.
      bytes += (group.size - 1) * kElement * std::min<uint64_t>(collective.call.elements, 1U << 20);
    }
  }
  return bytes;
}

uint64_t least_traffic(const std::vector<RecordedRun>& runs) {
  uint64_t bytes = 0;
  for (const auto& recorded : runs) {
    for (const auto& rank : recorded.run.ranks) bytes += least_traffic(rank);
  }
  return bytes;
}

}  // namespace

std::optional<Symptom> missing_traffic(const std::vector<RecordedRun>& runs, uint64_t passed) {
  const auto least = least_traffic(runs);
  if (passed >= least) return std::nullopt;
  return Symptom{.id = "nothing_passed_between_ranks",
                 .evidence = {{"least", {{"bytes", least}}}, {"passed", {{"bytes", passed}}}}};
}

}  // namespace checker
