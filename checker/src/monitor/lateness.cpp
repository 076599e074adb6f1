#include "monitor/lateness.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>

#include "evidence/collective_kinds.hpp"
#include "monitor/figures.hpp"

namespace checker::monitor {

bool synchronizes(uint8_t op_type) {
  using enum CollectiveKind;
  constexpr std::array kinds{all_reduce,
                             all_reduce_coalesced,
                             all_gather,
                             all_gather_into_tensor,
                             all_gather_coalesced,
                             reduce_scatter,
                             reduce_scatter_tensor,
                             all_to_all,
                             all_to_all_single,
                             barrier};
  return std::ranges::find(kinds, static_cast<CollectiveKind>(op_type)) != kinds.end();
}

std::vector<Meeting> meetings_of(const Run& run) {
  struct Found {
    Meeting meeting;
    uint32_t size = 0;
  };
  std::map<std::pair<std::string, uint64_t>, Found> all;
  for (size_t rank = 0; rank < run.ranks.size(); ++rank) {
    const auto& record = run.ranks[rank];
    for (const auto& call : record.collectives) {
      const auto group = record.groups.find(call.group);
      if (group == record.groups.end() || group->second.size < 2) continue;
      auto& found = all[{group->second.name, call.sequence}];
      found.size = group->second.size;
      found.meeting.ranks.push_back(rank);
      found.meeting.parts.push_back(&call);
    }
  }
  std::vector<Meeting> meetings;
  for (auto& [key, found] : all) {
    if (found.meeting.parts.size() == found.size) meetings.push_back(std::move(found.meeting));
  }
  return meetings;
}

std::vector<double> arrivals_at(const Meeting& meeting) {
  const bool timed =
      std::ranges::all_of(meeting.parts, [](const Collective* call) { return call->on_gpu > 0; });
  std::vector<double> arrivals;
  arrivals.reserve(meeting.parts.size());
  for (const auto* call : meeting.parts) arrivals.push_back(timed ? -call->on_gpu : call->begin);
  return arrivals;
}

std::map<std::string, double> clock_offsets(const Run& run) {
  // Of a few ends nothing is concluded, nor of less than a collective's own end may vary.
  constexpr size_t kLeastEnds = 5;
  constexpr double kNoise = 1e-3;
  std::map<std::string, std::vector<double>> apart;
  const auto first_host = run.ranks.front().host();
  for (const auto& meeting : meetings_of(run)) {
    if (meeting.ranks.front() != 0 || !synchronizes(meeting.parts.front()->op_type)) continue;
    for (size_t i = 1; i < meeting.ranks.size(); ++i) {
      const auto host = run.ranks[meeting.ranks[i]].host();
      if (host == first_host) continue;
      apart[host].push_back(meeting.parts[i]->end - meeting.parts[0]->end);
    }
  }
  std::map<std::string, double> offsets;
  for (auto& [host, values] : apart) {
    if (values.size() < kLeastEnds) continue;
    const double middle = median(std::move(values));
    if (std::abs(middle) > kNoise) offsets[host] = middle;
  }
  return offsets;
}

}  // namespace checker::monitor
