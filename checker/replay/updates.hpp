#pragma once
/// What an optimizer makes of what a rank recorded.
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "oracle.hpp"

namespace replay {

/// Shows all steps to the optimizer. Adds rates, rate_factor and update (see replay.hpp) to the
/// entries, which may be fewer. Returns the parameters after each step: nothing records those after
/// the last one.
std::vector<Flat> follow_updates(Stepper& stepper, const std::vector<checker::StepSeen>& steps,
                                 nlohmann::json& entries);

}  // namespace replay
