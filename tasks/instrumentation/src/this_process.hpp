#pragma once
#include <time.h>  // NOLINT(modernize-deprecated-headers): clockid_t is POSIX's

#include "instrumentation/log.hpp"

namespace instrumentation {

/// Nanoseconds of one of the system's clocks.
uint64_t read_clock(clockid_t clock);

/// How the log of this process begins. Rank, node and world are what the launcher says.
Header describe_process();

}  // namespace instrumentation
