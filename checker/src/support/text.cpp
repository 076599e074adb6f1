#include "support/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "console/edit_distance.hpp"
#include "instrumentation/fnv1a.hpp"

namespace checker {

std::vector<std::string> split_lines(std::string_view text) { return split(text, '\n'); }

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return parts;
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string joined;
  for (const auto& part : parts) {
    if (&part != parts.data()) joined += separator;
    joined += part;
  }
  return joined;
}

std::string replaced(std::string text, std::string_view part, std::string_view other) {
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + other.size())) {
    text.replace(at, part.size(), other);
  }
  return text;
}

std::vector<std::string> wrap(std::string_view paragraph, size_t width) {
  std::vector<std::string> lines;
  while (!(paragraph = trim(paragraph)).empty()) {
    const auto word = paragraph.substr(0, paragraph.find_first_of(" \t\n"));
    if (lines.empty() || lines.back().size() + 1 + word.size() > width) {
      lines.emplace_back(word);
    } else {
      lines.back().append(" ").append(word);
    }
    paragraph.remove_prefix(word.size());
  }
  return lines;
}

std::string nearest(std::string_view word, std::span<const std::string> candidates) {
  std::string best;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;  // beyond this it is another word
  for (const auto& candidate : candidates) {
    const bool begins = word.size() >= 2 && candidate.starts_with(word);
    const size_t distance = begins ? 0 : console::edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  const std::string best = nearest(word, candidates);
  return best.empty() ? "" : ". Did you mean '" + best + "'?";
}

std::string shell_quote(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

int whole_number(std::string_view text, int otherwise) {
  int number = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string fingerprint(std::string_view text) {
  const uint64_t hash = instrumentation::fnv1a(text);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4) hex += digits[(hash >> shift) & 15];
  return hex;
}

std::string format_seconds(double seconds) {
  std::array<char, 32> text{};
  if (seconds < 59.95) {
    std::snprintf(text.data(), text.size(), "%.1f s", seconds);
  } else {
    const auto whole = std::llround(seconds);
    std::snprintf(text.data(), text.size(), "%lld min %02lld s", whole / 60, whole % 60);
  }
  return text.data();
}

std::string count_of(size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string whole_sentences(std::string_view text, size_t at_most) {
  if (text.size() <= at_most) return std::string(text);
  const auto kept = text.substr(0, at_most);
  if (const auto end = kept.rfind(". "); end != kept.npos)
    return std::string(kept.substr(0, end + 1));
  const auto blank = kept.rfind(' ');
  return std::string(kept.substr(0, blank == kept.npos ? at_most : blank)) + " ...";
}

}  // namespace checker
