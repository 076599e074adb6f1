#pragma once
/// What Linux says of a process and of its machine (man 5 proc).
#include <optional>
#include <string>
#include <string_view>

#include "instrumentation/log.hpp"

namespace instrumentation {

/// From the texts of /proc/self/stat, /proc/self/status and /proc/self/io. The last may be empty,
/// because reading it takes rights. Nothing if they are not what they should be.
std::optional<ProcessSample> parse_process(std::string_view stat, std::string_view status,
                                           std::string_view io, uint64_t ticks_per_second);

/// From the texts of /proc/stat and /proc/meminfo.
std::optional<NodeSample> parse_node(std::string_view stat, std::string_view meminfo);

/// Those of this process and this machine, now.
std::optional<ProcessSample> sample_process();
std::optional<NodeSample> sample_node();

}  // namespace instrumentation
