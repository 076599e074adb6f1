#pragma once
/// Collectives as monitoring sees them (see distributed_utils/monitoring.hpp). Each function does
/// nothing in a process that is not monitored.
#include <cstdint>
#include <string>
#include <vector>

namespace distributed_utils::detail {

void monitor_group(uint32_t group, const std::string& name, int rank, int size);

/// A call is about to be made.
void monitor_issued(uint32_t group, uint64_t sequence, uint8_t op_type, uint64_t bytes);
/// It has ended.
void monitor_ended(uint32_t group, uint64_t sequence, bool failed);

/// Records what all collectives so far amount to, by type.
void record_traffic();

}  // namespace distributed_utils::detail
