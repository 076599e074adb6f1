// Text to numbers, with nothing left over and nothing out of range.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "tasks/config.hpp"
#include "tasks/options.hpp"

namespace tasks {
namespace {

template <class Number>
Number parse_number(const Value& value, Number least, Number most, std::string_view kind) {
  Number number{};
  const char* const end = value.text.data() + value.text.size();
  const auto [rest, failure] = std::from_chars(value.text.data(), end, number);
  if (failure == std::errc::invalid_argument || rest != end || std::isnan(double(number))) {
    throw Error(fmt::format("{}: '{}' is not a {}", value.where, value.text, kind));
  }
  if (failure == std::errc::result_out_of_range || number < least || number > most) {
    throw Error(fmt::format("{}: {} is out of range; it must be from {} to {}", value.where,
                            value.text, least, most));
  }
  return number;
}

}  // namespace

int64_t parse_integer(const Value& value, int64_t least, int64_t most) {
  return parse_number(value, least, most, "whole number");
}

double parse_real(const Value& value, double least, double most) {
  return parse_number(value, least, most, "number");
}

bool parse_boolean(const Value& value) {
  if (value.text == "true") return true;
  if (value.text == "false") return false;
  throw Error(fmt::format("{}: expected true or false, got '{}'", value.where, value.text));
}

}  // namespace tasks
