#pragma once
/// How long collectives take, for monitoring. Each function does nothing in a process that is not
/// monitored.
#include "instrumentation/events.hpp"

namespace instrumentation {

/// A call is about to be made. queued: on a GPU, where it waits for what was called before it.
void time_issued(const CollectiveRecord& call, bool queued);
/// It has ended.
void time_completed(const CompletedRecord& end);

/// Records what all collectives so far amount to, by type.
void record_traffic();

}  // namespace instrumentation
