#include "course/source.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "course/numbers.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

bool is_feature(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_mark(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

// "#if X" begins with the word "#if"; "#iffy" does not.
bool is_word(std::string_view line, std::string_view word) {
  return line.starts_with(word) && (line.size() == word.size() || line[word.size()] == ' ');
}

}  // namespace

Source::Source(std::string file, std::string comment, std::string_view text)
    : file_(std::move(file)), comment_(std::move(comment)) {
  int number = 0;
  for (const auto& line : split_lines(text)) lines_.push_back(parse(line, ++number));
  validate();
}

std::string Source::at(int number) const { return file_ + ":" + std::to_string(number); }

Source::Line Source::parse(const std::string& text, int number) const {
  const size_t at_mark = text.find(comment_ + "@");
  const auto code = text.substr(0, at_mark);
  if (at_mark == text.npos || trim(code).empty()) return parse_unmarked(text, number);
  const auto name = text.substr(at_mark + comment_.size() + 1);
  if (!is_mark(name) || !code.ends_with("  ") || code.ends_with("   ")) {
    throw Error(at(number) + ": \"" + text.substr(at_mark) + "\" is not a mark: two blanks, " +
                comment_ +
                "@ and a name of small letters, digits, _ and . at the end of the line.");
  }
  auto line = parse_unmarked(code.substr(0, code.size() - 2), number);
  const auto word = trim(line.text);
  if (line.kind != Kind::text || word == comment_ || word.starts_with(comment_ + " ")) {
    throw Error(at(number) + ": only code has a mark.");
  }
  line.mark = name;
  return line;
}

Source::Line Source::parse_unmarked(const std::string& text, int number) const {
  if (is_word(text, "#else")) return {Kind::else_, {}, 0, number};
  if (is_word(text, "#endif")) return {Kind::endif, {}, 0, number};
  if (is_word(text, "#if")) {
    auto name = trim(std::string_view(text).substr(3));
    const bool off = name.starts_with('!');
    if (off) name.remove_prefix(1);
    if (!is_feature(name)) {
      throw Error(at(number) + ": \"" + text + "\": after #if comes one feature in capitals, " +
                  "perhaps with ! before it.");
    }
    return {off ? Kind::if_off : Kind::if_on, std::string(name), 0, number};
  }
  const auto indentation = text.substr(0, text.find_first_not_of(' '));
  const auto word = trim(text);
  if (!word.starts_with(comment_ + "@")) return {Kind::text, text, 0, number};
  const auto marker = word.substr(comment_.size());
  if (marker == "@header") return {Kind::header, indentation, 0, number};
  int todo = 0;
  if (marker.starts_with("@todo ")) {
    todo = todo_labelled(marker.substr(6)).value_or(0);
  }
  if (todo < 1) {
    throw Error(at(number) + ": \"" + std::string(word) + "\" is neither " + comment_ +
                "@todo <number> nor " + comment_ + "@header.");
  }
  return {Kind::todo, indentation, todo, number};
}

void Source::validate() const {
  std::vector<std::pair<int, bool>> open;  // line of each open #if, and whether it had its #else
  int headers = 0;
  for (const auto& line : lines_) {
    if (line.kind == Kind::if_on || line.kind == Kind::if_off)
      open.emplace_back(line.number, false);
    if (line.kind == Kind::header) ++headers;
    if (line.kind != Kind::else_ && line.kind != Kind::endif) continue;
    if (open.empty()) throw Error(at(line.number) + ": no #if is open here.");
    if (line.kind == Kind::endif) {
      open.pop_back();
    } else if (std::exchange(open.back().second, true)) {
      throw Error(at(line.number) + ": a second #else for the #if of line " +
                  std::to_string(open.back().first) + ".");
    }
  }
  if (!open.empty()) throw Error(at(open.back().first) + ": this #if has no #endif.");
  if (headers != 1) {
    throw Error(file_ + ": " + comment_ + "@header must stand in it once, not " +
                std::to_string(headers) + " times.");
  }
}

std::set<std::string> Source::features() const {
  std::set<std::string> names;
  for (const auto& line : lines_) {
    if (line.kind == Kind::if_on || line.kind == Kind::if_off) names.insert(line.text);
  }
  return names;
}

std::set<int> Source::todos() const {
  std::set<int> numbers;
  for (const auto& line : lines_) {
    if (line.kind == Kind::todo) numbers.insert(line.todo);
  }
  return numbers;
}

std::set<std::string> Source::marks() const {
  std::set<std::string> names;
  for (const auto& line : lines_) {
    if (!line.mark.empty()) names.insert(line.mark);
  }
  return names;
}

size_t Source::places(int todo) const {
  return static_cast<size_t>(std::ranges::count_if(
      lines_, [&](const Line& line) { return line.kind == Kind::todo && line.todo == todo; }));
}

std::string Source::where(const std::string& feature) const {
  for (const auto& line : lines_) {
    const bool condition = line.kind == Kind::if_on || line.kind == Kind::if_off;
    if (condition && line.text == feature) return at(line.number);
  }
  return file_;
}

std::string Source::where(int todo) const {
  for (const auto& line : lines_) {
    if (line.kind == Kind::todo && line.todo == todo) return at(line.number);
  }
  return file_;
}

void Source::check_marks(const std::vector<const Line*>& chosen) const {
  std::map<std::string, size_t> last;
  for (size_t i = 0; i < chosen.size(); ++i) {
    const auto& mark = chosen[i]->mark;
    if (mark.empty()) continue;
    const auto [before, first] = last.try_emplace(mark, i);
    if (!first && before->second + 1 != i) {
      throw Error(at(chosen[i]->number) + ": the mark " + mark + " is also on line " +
                  std::to_string(chosen[before->second]->number) +
                  ", and what stands between them is not marked so.");
    }
    before->second = i;
  }
}

std::vector<PlacedLine> Source::select(const std::set<std::string>& features) const {
  std::vector<const Line*> chosen;
  std::vector<bool> open;  // of each open #if: whether its present branch is chosen
  for (const auto& line : lines_) {
    switch (line.kind) {
      case Kind::if_on:
      case Kind::if_off:
        open.push_back(features.contains(line.text) == (line.kind == Kind::if_on));
        continue;
      case Kind::else_:
        open.back() = !open.back();
        continue;
      case Kind::endif:
        open.pop_back();
        continue;
      case Kind::text:
      case Kind::todo:
      case Kind::header:
        break;
    }
    if (!std::ranges::all_of(open, [](bool branch) { return branch; })) continue;
    chosen.push_back(&line);
  }
  check_marks(chosen);
  std::vector<PlacedLine> lines;
  for (const auto* line : chosen) {
    lines.push_back({line->text, line->todo, line->kind == Kind::header, line->number, line->mark});
  }
  return lines;
}

}  // namespace checker
