#pragma once
/// The ranks tell each other which pieces they hold, so that only one rank writes a piece that
/// several hold.
#include <cstdint>
#include <string>
#include <vector>

#include "distributed_utils/placement.hpp"

namespace distributed_utils::detail {

/// What all ranks have said, rank by rank.
struct Announced {
  std::vector<int64_t> steps;
  std::vector<std::vector<std::string>> model, optimizer;  ///< as describe() has it
};

/// Which pieces of model and optimizer this rank holds that may not be everybody's.
std::string announce(int64_t step, const std::vector<Placement>& model,
                     const std::vector<Placement>& optimizer);

Announced read_announced(const std::vector<std::string>& texts);

}  // namespace distributed_utils::detail
