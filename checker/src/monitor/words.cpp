#include "monitor/words.hpp"

#include <array>
#include <cmath>
#include <cstdio>

#include "evidence/collective_kinds.hpp"
#include "support/text.hpp"

namespace checker::monitor {

namespace {

std::string formatted(const char* form, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), form, value);
  return text.data();
}

// Three significant digits, without an exponent.
std::string three_digits(double value) {
  const double size = std::abs(value);
  return fixed(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

}  // namespace

std::string compact(double value) { return formatted("%.6g", value); }

std::string shown_seconds(double seconds) {
  const double size = std::abs(seconds);
  if (size < 1e-3) return three_digits(seconds * 1e6) + " µs";
  if (size < 1) return three_digits(seconds * 1e3) + " ms";
  if (size < 60) return three_digits(seconds) + " s";
  const auto whole = static_cast<int64_t>(std::lround(size));
  std::array<char, 64> text{};
  if (whole < 3600) {
    std::snprintf(text.data(), text.size(), "%d min %02d s", static_cast<int>(whole / 60),
                  static_cast<int>(whole % 60));
  } else {
    std::snprintf(text.data(), text.size(), "%ld h %02d min", static_cast<long>(whole / 3600),
                  static_cast<int>(whole / 60 % 60));
  }
  return text.data();
}

std::string shown_bytes(double bytes) {
  constexpr std::array<const char*, 6> units{" B", " KiB", " MiB", " GiB", " TiB", " PiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return (unit == 0 ? fixed(bytes, 0) : three_digits(bytes)) + units.at(unit);
}

std::string shown_count(double count) {
  if (count < 1e4) return fixed(count, count < 10 && count != std::floor(count) ? 1 : 0);
  if (count < 1e6) return three_digits(count / 1e3) + "k";
  if (count < 1e9) return three_digits(count / 1e6) + "M";
  return three_digits(count / 1e9) + "G";
}

std::string shown_share(double share) {
  const double percent = 100 * share;
  return fixed(percent, percent > 0 && percent < 1 ? 1 : 0) + " %";
}

std::string_view collective_name(uint8_t op_type) {
  return op_type < kCollectiveNames.size() ? kCollectiveNames.at(op_type) : "unknown";
}

}  // namespace checker::monitor
