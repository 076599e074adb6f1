#include "report/look.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "support/text.hpp"

namespace checker {

namespace {

// What the locale's name says; asking the locale itself would need setlocale(), which changes how
// numbers are written.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    std::string letters;
    for (const char c : std::string_view(value)) {
      if (c != '-') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return letters.find("utf8") != letters.npos;
  }
  return false;
}

size_t room(size_t indent, const Look& look) {
  return std::max<size_t>(20, look.width > indent ? look.width - indent : 0);
}

}  // namespace

Look present_look() {
  return {.width = std::min<size_t>(100, terminal::width()), .unicode = locale_is_utf8()};
}

std::string mark(State state, const Look& look) {
  using terminal::Style;
  switch (state) {
    case State::done:
      return look.styled(Style::green, look.unicode ? "✓" : "+");
    case State::wrong:
      return look.styled(Style::red, look.unicode ? "✗" : "x");
    case State::open:
      return look.unicode ? "○" : "o";
    case State::not_judged:
      break;
  }
  return look.styled(Style::dim, look.unicode ? "·" : ".");
}

size_t columns(std::string_view text) {
  size_t count = 0;
  bool escape = false;
  for (const char c : text) {
    if (c == '\033') {
      escape = true;
    } else if (escape) {
      escape = !std::isalpha(static_cast<unsigned char>(c));
    } else if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) {
      ++count;
    }
  }
  return count;
}

std::string printable(std::string_view text) {
  std::string clean;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\t') {
      clean += "  ";
    } else {
      clean += code < 0x20 || code == 0x7f ? '?' : c;
    }
  }
  return clean;
}

std::vector<std::string> paragraphs(std::string_view text, size_t indent, const Look& look) {
  std::vector<std::string> lines;
  const std::string blanks(indent, ' ');
  std::string words;
  const auto flush = [&] {
    for (const auto& line : wrap(words, room(indent, look))) lines.push_back(blanks + line);
    words.clear();
  };
  for (const auto& line : split_lines(text)) {
    const bool example = line.starts_with("  "), empty = trim(line).empty();
    if (example || empty) flush();
    if (empty) {
      lines.emplace_back();
    } else if (example) {
      lines.push_back(blanks + printable(line));
    } else {
      words += printable(line) + "\n";
    }
  }
  flush();
  return lines;
}

std::vector<std::string> hanging_line(std::string_view text, size_t indent, const Look& look) {
  const auto clean = printable(text);
  if (columns(clean) <= room(indent, look)) return {std::string(indent, ' ') + clean};
  std::vector<std::string> lines;
  for (const auto& line : wrap(clean, room(indent + 2, look))) {
    lines.push_back(std::string(indent + (lines.empty() ? 0 : 2), ' ') + line);
  }
  return lines;
}

void append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

}  // namespace checker
