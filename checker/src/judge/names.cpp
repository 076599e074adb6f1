#include "judge/names.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace checker {

namespace {

constexpr std::array<std::pair<State, std::string_view>, 4> state_names{
    {{State::open, "open"},
     {State::done, "done"},
     {State::wrong, "wrong"},
     {State::not_judged, "not_judged"}}};

}  // namespace

std::string_view name_of(State state) {
  return std::ranges::find(state_names, state, [](const auto& entry) { return entry.first; })
      ->second;
}

std::optional<State> state_named(std::string_view name) {
  for (const auto& [state, known] : state_names) {
    if (known == name) return state;
  }
  return std::nullopt;
}

}  // namespace checker
