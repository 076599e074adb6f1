#include "judge/divergence.hpp"

#include <algorithm>

namespace checker {

namespace {

// What a rank came past that all ranks come past: calls, and the splits that it went through.
struct Milestone {
  Kind kind;
  uint64_t split = 0;
  bool operator==(const Milestone&) const = default;
};

std::vector<Milestone> milestones_of(const RankSeen& rank) {
  std::vector<Milestone> all;
  for (const auto& event : rank.log.events) {
    Milestone next{event.kind};
    if (event.kind == Kind::fetch) {
      next.split = event.head<uint64_t>().value_or(0);
      if (!all.empty() && all.back() == next) continue;  // another batch of the same pass
    } else if (event.kind != Kind::printed && event.kind != Kind::saved) {
      continue;
    }
    all.push_back(next);
  }
  return all;
}

std::optional<std::string_view> feature_of(const std::vector<Milestone>& milestones, size_t at) {
  if (at >= milestones.size()) return std::nullopt;
  if (milestones[at].kind == Kind::printed) return feature::print0;
  if (milestones[at].kind == Kind::saved) return feature::save0;
  return std::nullopt;
}

}  // namespace

std::optional<std::string_view> first_call_not_shared(const Run& run) {
  if (run.ranks.empty()) return std::nullopt;
  const auto first = milestones_of(run.ranks[0]);
  for (size_t rank = 1; rank < run.ranks.size(); ++rank) {
    const auto other = milestones_of(run.ranks[rank]);
    const auto parted =
        static_cast<size_t>(std::ranges::mismatch(first, other).in1 - first.begin());
    if (const auto mine = feature_of(first, parted)) return mine;
    if (const auto theirs = feature_of(other, parted)) return theirs;
  }
  return std::nullopt;
}

}  // namespace checker
