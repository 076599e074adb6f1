#pragma once
/// The names of states in files.
#include <optional>
#include <string_view>

#include "judge/verdict.hpp"

namespace checker {

/// "open", "done", "wrong", "not_judged".
std::string_view name_of(State state);

/// Nothing for a name that this version does not know.
std::optional<State> state_named(std::string_view name);

}  // namespace checker
