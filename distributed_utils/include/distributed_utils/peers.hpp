#pragma once
/// lost_peers finds the ranks that are missing when a collective fails.
#include <chrono>
#include <exception>
#include <vector>

namespace distributed_utils {

/// Returns the ranks that have ended or hang, in order, if `error` means that another rank is gone:
/// a connection closed, or setup()'s timeout passed. Every rank whose collective failed must call
/// this once. Ranks that do not call it within `patience` are returned. The list is empty for other
/// errors, and if no rank is missing (the ranks waited in collectives that do not match). It closes
/// this rank's connections in all groups, so that others learn of the failure at once. After it, no
/// collective succeeds.
std::vector<int> lost_peers(const std::exception& error,
                            std::chrono::milliseconds patience = std::chrono::seconds(5));

}  // namespace distributed_utils
