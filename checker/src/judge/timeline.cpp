#include "judge/timeline.hpp"

#include <algorithm>
#include <limits>

#include "judge/collectives.hpp"

namespace checker {

namespace {

constexpr size_t kMost = 300;

double seconds_between(uint64_t begin, uint64_t end) {
  return end < begin ? 0 : static_cast<double>(end - begin) * 1e-9;
}

}  // namespace

Timeline timeline_of(const Run& run) {
  uint64_t begin = std::numeric_limits<uint64_t>::max(), end = 0;
  for (const auto& rank : run.ranks) {
    if (rank.log.events.empty()) continue;
    begin = std::min(begin, rank.log.events.front().nanoseconds);
    end = std::max(end, rank.log.events.back().nanoseconds);
  }
  Timeline timeline;
  for (const auto& rank : run.ranks) {
    auto& spans = timeline.ranks.emplace_back();
    for (size_t i = 0; i < rank.collectives.size(); ++i) {
      if (i >= kMost / 2 && i + kMost / 2 < rank.collectives.size()) continue;
      const auto& collective = rank.collectives[i];
      const auto at = [&](size_t event) { return rank.log.events[event].nanoseconds; };
      const uint64_t last = collective.completed ? at(collective.end_event) : end;
      spans.push_back({.begin = seconds_between(begin, at(collective.event)),
                       .end = seconds_between(begin, last),
                       .what = describe(collective),
                       .ended = collective.completed});
    }
  }
  return timeline;
}

}  // namespace checker
