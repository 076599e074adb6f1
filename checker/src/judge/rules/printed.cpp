#include "judge/rules/printed.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace checker::rules {

std::vector<double> numbers_in(const std::vector<std::string>& lines) {
  std::vector<double> numbers;
  for (const auto& line : lines) {
    const char* at = line.c_str();
    while (*at) {
      char* end = nullptr;
      const double value = std::strtod(at, &end);
      if (end == at) {
        ++at;
      } else {
        numbers.push_back(value);
        at = end;
      }
    }
  }
  return numbers;
}

std::optional<double> number_after(const std::string& line, std::string_view word) {
  const auto at = line.find(word);
  if (at == std::string::npos) return std::nullopt;
  constexpr size_t kBetween = 4;
  const auto digit = line.find_first_of("0123456789", at + word.size());
  if (digit == std::string::npos || digit > at + word.size() + kBetween) return std::nullopt;
  return std::strtod(line.c_str() + digit, nullptr);
}

size_t times_shown(const std::vector<double>& numbers, double wanted) {
  return static_cast<size_t>(std::ranges::count_if(
      numbers, [&](double value) { return std::abs(value - wanted) < 6e-4; }));
}

bool shown(const std::vector<double>& numbers, double wanted) {
  return times_shown(numbers, wanted) > 0;
}

}  // namespace checker::rules
