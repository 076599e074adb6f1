#pragma once
/// Where ranks part.
#include <optional>
#include <string>

#include "judge/scene.hpp"

namespace checker {

/// Ranks call print0 and save0 equally often, at the same places of the program. What blame tables
/// call the first such call that one rank makes and another does not, "call.print0"; nothing if
/// they part elsewhere.
std::optional<std::string> first_call_not_shared(const Run& run);

/// print0 follows each evaluation, and save0 ends the program. Such a call that some rank left out
/// when it went on or home; nothing where all calls are there, or all are made in another way.
std::optional<std::string> first_call_left_out(const Run& run);

}  // namespace checker
