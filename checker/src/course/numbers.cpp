#include "course/numbers.hpp"

#include <cctype>
#include <charconv>

namespace checker {

namespace {

constexpr int kSeries = 1000;  // numbers for each letter, and for the steps

}  // namespace

bool is_exercise(int todo) { return todo >= kSeries; }

bool same_series(int todo, int other) { return todo / kSeries == other / kSeries; }

std::string label_of_todo(int todo) {
  if (!is_exercise(todo)) return std::to_string(todo);
  const auto letter = static_cast<char>('A' + todo / kSeries - 1);
  return letter + std::to_string(todo % kSeries);
}

std::string name_of_todo(int todo) { return "TODO " + label_of_todo(todo); }

std::optional<int> todo_labelled(std::string_view label) {
  int series = 0;
  if (!label.empty() && std::isalpha(static_cast<unsigned char>(label.front())) != 0) {
    series = std::toupper(static_cast<unsigned char>(label.front())) - 'A' + 1;
    label.remove_prefix(1);
  }
  int number = 0;
  const auto [end, error] = std::from_chars(label.data(), label.data() + label.size(), number);
  if (error != std::errc() || end != label.data() + label.size()) return std::nullopt;
  if (number < 1 || number >= kSeries) return std::nullopt;
  return series * kSeries + number;
}

}  // namespace checker
