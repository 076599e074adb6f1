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

/// Whether nobody leaves this type of collective before everybody came.
bool synchronizes(uint8_t op_type);

}  // namespace checker::monitor
