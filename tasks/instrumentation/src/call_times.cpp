#include "call_times.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "instrumentation/monitoring.hpp"

namespace instrumentation {
namespace {

struct Issued {
  uint64_t begin;
  uint64_t bytes;
  uint8_t op_type;
  bool queued;
};

// The collectives of this process: those under way and the sums of those that have ended.
struct Calls {
  std::mutex mutex;
  std::map<std::pair<uint32_t, uint64_t>, Issued> under_way;  // by group and sequence
  std::map<uint8_t, TrafficRecord> ended;                     // by type
  uint64_t on_host = 0;     // of those under way, the ones that are not queued
  uint64_t busy = 0;        // time in which at least one of these was, up to busy_until
  uint64_t busy_until = 0;  // counted up to here, while one is
  bool changed = false;

  // Counts the time since it was last called, if any collective was under way.
  void count(uint64_t now) {
    if (on_host > 0 && now > busy_until) busy += now - busy_until;
    busy_until = now;
  }
};

Calls& calls() {
  static auto* const all = new Calls;  // leaked: works end until the very end
  return *all;
}

}  // namespace

void time_issued(const CollectiveRecord& call, bool queued) {
  if (!monitoring::enabled()) return;
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  const uint64_t now = monitoring::now();
  all.count(now);
  all.under_way[{call.group, call.sequence}] = {now, call.bytes, call.op_type, queued};
  if (!queued) ++all.on_host;
}

void time_completed(const CompletedRecord& end) {
  if (!monitoring::enabled()) return;
  const uint64_t now = monitoring::now();
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  const auto found = all.under_way.find({end.group, end.sequence});
  if (found == all.under_way.end()) return;
  all.count(now);
  const Issued issued = found->second;
  all.under_way.erase(found);
  if (issued.queued) {
    all.busy += end.on_gpu;  // a group's run one after the other
  } else {
    --all.on_host;
  }
  auto& sum = all.ended[issued.op_type];
  sum.op_type = issued.op_type;
  ++sum.calls;
  sum.bytes += issued.bytes;
  sum.nanoseconds += issued.queued ? end.on_gpu : now - issued.begin;
  all.changed = true;
}

void record_traffic() {
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  if (!std::exchange(all.changed, false)) return;
  for (const auto& [type, sum] : all.ended) monitoring::record_one(Kind::traffic, sum);
}

uint64_t monitoring::collective_time() {
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  all.count(now());
  return std::exchange(all.busy, 0);
}

}  // namespace instrumentation
