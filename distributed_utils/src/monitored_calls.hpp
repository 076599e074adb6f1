#pragma once
/// Collectives as monitoring sees them (see distributed_utils/monitoring.hpp). Each function does
/// nothing in a process that is not monitored.
#include <cstdint>
#include <string>
#include <vector>

namespace distributed_utils::detail {

void monitor_group(uint32_t group, const std::string& name, int rank, int size);

/// A call is about to be made. queued: on a GPU, where it waits for what was called before it.
void monitor_issued(uint32_t group, uint64_t sequence, uint8_t op_type, uint64_t bytes,
                    bool queued);
/// It has ended. on_gpu: nanoseconds that it ran there; 0: not known.
void monitor_ended(uint32_t group, uint64_t sequence, bool failed, uint64_t on_gpu);

/// Records what all collectives so far amount to, by type.
void record_traffic();

}  // namespace distributed_utils::detail
