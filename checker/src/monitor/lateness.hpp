#pragma once
/// Collectives that all ranks of a group took part in, side by side.
#include <vector>

#include "monitor/run.hpp"

namespace checker::monitor {

/// One collective and each rank's part in it.
struct Meeting {
  std::vector<size_t> ranks;             ///< indices into Run::ranks
  std::vector<const Collective*> parts;  ///< of those
};

/// Those of groups of two ranks and more that every rank of the group recorded.
std::vector<Meeting> meetings_of(const Run& run);

/// When each of its ranks came to it. On GPUs, where ends are known to milliseconds but kernels'
/// times are exact: before the end that all have in common. Only to be compared with each other.
std::vector<double> arrivals_at(const Meeting& meeting);

/// Whether nobody leaves this type of collective before everybody came.
bool synchronizes(uint8_t op_type);

}  // namespace checker::monitor
