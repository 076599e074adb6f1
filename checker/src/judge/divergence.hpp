#pragma once
/// Where ranks part.
#include <optional>
#include <string_view>

#include "judge/scene.hpp"

namespace checker {

/// Ranks call print0 and save0 equally often, at the same places of the program. The feature of the
/// first such call that one rank makes and another does not; nothing if they part elsewhere.
std::optional<std::string_view> first_call_not_shared(const Run& run);

}  // namespace checker
