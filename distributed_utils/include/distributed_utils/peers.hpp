#pragma once
/// Who is to blame when a collective fails for want of the others?
#include <chrono>
#include <exception>
#include <vector>

namespace distributed_utils {

/// The ranks that have ended, or hang, if `error` is how a collective fails when another rank is no
/// longer there: its connection closed, or the time-out of setup() passed. Every rank whose
/// collective failed calls this, once; those that do not within `patience` are returned, in order.
/// Empty for other errors, and where nobody is missing (the ranks waited in collectives that do not
/// fit together). Breaks off this rank's connections in all groups, so that others learn of the
/// failure at once: after it, no collective succeeds.
std::vector<int> lost_peers(const std::exception& error,
                            std::chrono::milliseconds patience = std::chrono::seconds(5));

}  // namespace distributed_utils
