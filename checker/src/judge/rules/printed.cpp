#include "judge/rules/printed.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <regex>

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

namespace {

// Where it begins.
std::optional<size_t> place_of_number(const std::string& line, std::string_view word) {
  const auto at = line.find(word);
  if (at == std::string::npos) return std::nullopt;
  constexpr size_t kBetween = 4;
  const auto digit = line.find_first_of("0123456789", at + word.size());
  if (digit == std::string::npos || digit > at + word.size() + kBetween) return std::nullopt;
  return digit;
}

}  // namespace

std::optional<double> number_after(const std::string& line, std::string_view word) {
  const auto place = place_of_number(line, word);
  if (!place) return std::nullopt;
  return std::strtod(line.c_str() + *place, nullptr);
}

bool may_be_one_of(const std::string& line, std::string_view word,
                   const std::vector<double>& losses) {
  const auto place = place_of_number(line, word);
  if (!place) return true;
  const auto point = std::min(line.find_first_not_of("0123456789", *place), line.size());
  if (point == line.size() || line[point] != '.') return true;
  const auto end = std::min(line.find_first_not_of("0123456789", point + 1), line.size());
  const auto decimals = static_cast<int>(end - point) - 1;
  if (decimals < 2) return true;
  // It may be rounded or cut off, and computed in float.
  const double tolerance = std::max(6e-4, 1.01 * std::pow(10.0, -decimals));
  const double value = std::strtod(line.c_str() + *place, nullptr);
  return std::ranges::any_of(losses,
                             [&](double loss) { return std::abs(value - loss) <= tolerance; });
}

std::optional<std::string> unformatted(const std::vector<std::string>& lines) {
  // A number with its percent sign is none: "50%done".
  static const std::regex conversion(R"((^|[^0-9%])%[0-9]*(\.[0-9]+)?l*[sdifge])");
  const auto found = std::ranges::find_if(
      lines, [](const std::string& line) { return std::regex_search(line, conversion); });
  return found == lines.end() ? std::nullopt : std::optional(*found);
}

bool losses_are_in_doubt(const Symptoms& symptoms) {
  return std::ranges::any_of(symptoms, [](const Symptom& symptom) {
    const auto& id = symptom.id;
    return id.ends_with("_not_global") || id == "loss_global_on_some_ranks" ||
           id.starts_with("validation_") || id.starts_with("test_");
  });
}

size_t times_shown(const std::vector<double>& numbers, double wanted) {
  return static_cast<size_t>(std::ranges::count_if(
      numbers, [&](double value) { return std::abs(value - wanted) < 6e-4; }));
}

bool shown(const std::vector<double>& numbers, double wanted) {
  return times_shown(numbers, wanted) > 0;
}

}  // namespace checker::rules
