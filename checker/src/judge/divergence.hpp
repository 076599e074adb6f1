#pragma once
/// Where ranks part.
#include <optional>
#include <string_view>

#include "judge/scene.hpp"

namespace checker {

/// Ranks call print0 and save0 equally often, at the same places of the program. The feature of the
/// first such call that one rank makes and another does not; nothing if they part elsewhere.
std::optional<std::string_view> first_call_not_shared(const Run& run);

/// print0 follows each evaluation, and save0 ends the program. The feature of such a call that some
/// rank left out when it went on or home; nothing where all calls are there, or all are made in
/// another way.
std::optional<std::string_view> first_call_left_out(const Run& run);

}  // namespace checker
