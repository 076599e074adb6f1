// How the catalogue's edits are made.
#include <algorithm>
#include <string_view>

#include "course/catalogue.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

using Lines = std::vector<RenderedLine>;

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

Lines marked(const std::vector<std::string>& texts, const std::string& mark) {
  Lines lines;
  for (const auto& text : texts) lines.push_back({text, mark});
  return lines;
}

std::vector<std::string> texts_of(const Lines& lines) {
  std::vector<std::string> texts;
  for (const auto& line : lines) texts.push_back(line.text);
  return texts;
}

// The fragment's place is taken within what the mark's lines are together.
Lines changed(const Edit& edit, const Lines& lines) {
  const auto& mark = lines.front().mark;
  const auto before = join(texts_of(lines), "\n");
  const size_t found = count(before, edit.fragment);
  if (found != 1) {
    throw Error(edit.where + ": \"" + edit.fragment + "\" is " +
                (found == 0 ? "not" : std::to_string(found) + " times") + " in the lines of " +
                mark + ":\n" + before);
  }
  return marked(split_lines(replaced(before, edit.fragment, edit.text)), mark);
}

// What replaces a mark's lines after the edit.
Lines edited(const Edit& edit, const Lines& lines) {
  // What an edit brings has no mark: it does not concern other edits.
  const auto brought = marked(split_lines(edit.text), "");
  auto result = lines;
  switch (edit.form) {
    case Edit::Form::replace:
      return brought;
    case Edit::Form::remove:
      return {};
    case Edit::Form::before:
      result.insert(result.begin(), brought.begin(), brought.end());
      return result;
    case Edit::Form::after:
      result.insert(result.end(), brought.begin(), brought.end());
      return result;
    case Edit::Form::change:
      return changed(edit, lines);
  }
  return result;
}

void make(const Edit& edit, const std::string& mark, Lines& lines) {
  const auto has_mark = [&](const RenderedLine& line) { return line.mark == mark; };
  const auto first = std::ranges::find_if(lines, has_mark);
  if (first == lines.end()) {
    throw Error(edit.where + ": the mark " + mark + " is not in the solution of the TODO's step.");
  }
  const auto last = std::find_if_not(first, lines.end(), has_mark);
  const Lines before(first, last);
  const auto after = edited(edit, before);
  if (texts_of(after) == texts_of(before)) {
    throw Error(edit.where + ": this edit changes nothing.");
  }
  lines.insert(lines.erase(first, last), after.begin(), after.end());
}

}  // namespace

std::string apply_edits(const CatalogueEntry& entry, std::vector<RenderedLine> lines) {
  for (const auto& edit : entry.edits) {
    for (const auto& mark : edit.marks) make(edit, mark, lines);
  }
  return text_of(lines);
}

}  // namespace checker
