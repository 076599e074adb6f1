#include "report/diff.hpp"

#include <algorithm>

#include "support/common_lines.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

constexpr size_t context = 3;

struct DiffLine {
  char sign;
  std::string text;
  size_t number;  // in `mine`: its own, or that of the line before which it is new
};

// Slurm's options and the first line of a script look like comments and are none.
bool is_code(std::string_view line, std::string_view comment) {
  const auto word = trim(line);
  if (word.starts_with("#!") || word.starts_with("#SBATCH")) return true;
  return !word.empty() && !word.starts_with(comment);
}

// What two lines must share to be the same: code its words, a TODO's comment its number, so that
// each TODO's place is compared with its own. Empty: the line makes no difference.
std::string_view essence(std::string_view line, std::string_view comment) {
  const auto word = trim(line);
  if (is_code(line, comment)) return word;
  constexpr std::string_view todo = " TODO ";
  if (!word.starts_with(comment) || !word.substr(comment.size()).starts_with(todo)) return {};
  const auto begin = comment.size() + todo.size();
  return word.substr(0, std::min(word.size(), word.find_first_not_of("0123456789", begin)));
}

std::vector<size_t> lines_that_count(const std::vector<std::string>& lines,
                                     std::string_view comment) {
  std::vector<size_t> numbers;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!essence(lines[i], comment).empty()) numbers.push_back(i);
  }
  return numbers;
}

using Pairs = std::vector<std::pair<size_t, size_t>>;

// The lines that make a difference and that both have.
Pairs common_code(const std::vector<std::string>& a, const std::vector<std::string>& b,
                  std::string_view comment) {
  const auto in_a = lines_that_count(a, comment), in_b = lines_that_count(b, comment);
  const auto essences = [&](const auto& lines, const auto& numbers) {
    std::vector<std::string_view> all;
    for (const size_t number : numbers) all.push_back(essence(lines[number], comment));
    return all;
  };
  auto pairs = common_lines(essences(a, in_a), essences(b, in_b));
  for (auto& [mine, theirs] : pairs) {
    mine = in_a[mine];
    theirs = in_b[theirs];
  }
  return pairs;
}

// Where new lines belong among [begin, end) of mine, which no line of theirs equals: instead of the
// last one that goes, else behind the comment that this place begins with, else at the end.
size_t place_of_new(const std::vector<std::string>& mine, size_t begin, size_t end,
                    std::string_view comment) {
  for (size_t i = end; i-- > begin;) {
    if (is_code(mine[i], comment)) return i + 1;
  }
  const bool after_todo = begin > 0 && !is_code(mine[begin - 1], comment);
  if (!after_todo) return end;
  while (begin < end && trim(mine[begin]).starts_with(comment)) ++begin;
  return begin;
}

std::vector<DiffLine> all_lines(const std::vector<std::string>& mine,
                                const std::vector<std::string>& theirs, std::string_view comment) {
  auto pairs = common_code(mine, theirs, comment);
  pairs.emplace_back(mine.size(), theirs.size());
  std::vector<DiffLine> lines;
  size_t begin = 0, next = 0;  // in mine, in theirs
  for (const auto& [end, their_end] : pairs) {
    const auto place = place_of_new(mine, begin, end, comment);
    for (size_t i = begin; i <= end; ++i) {
      for (; i == place && next < their_end; ++next) {
        if (is_code(theirs[next], comment)) lines.push_back({'+', theirs[next], i + 1});
      }
      if (i == end) break;
      lines.push_back({is_code(mine[i], comment) ? '-' : ' ', mine[i], i + 1});
    }
    if (end < mine.size()) lines.push_back({' ', mine[end], end + 1});
    begin = end + 1;
    next = their_end + 1;
  }
  return lines;
}

}  // namespace

std::vector<std::string> code_diff(std::string_view mine, std::string_view theirs,
                                   std::string_view comment) {
  const auto lines = all_lines(split_lines(mine), split_lines(theirs), comment);
  std::vector<bool> shown(lines.size());
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].sign == ' ') continue;
    const auto last = std::min(lines.size(), i + context + 1);
    for (size_t near = i - std::min(i, context); near < last; ++near) shown[near] = true;
  }
  std::vector<std::string> diff;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!shown[i]) continue;
    if (i == 0 || !shown[i - 1]) {
      diff.push_back("@@ line " + std::to_string(lines[i].number) + " @@");
    }
    diff.push_back(lines[i].sign + lines[i].text);
  }
  return diff;
}

std::vector<std::string> styled_diff(std::vector<std::string> diff, const Look& look) {
  for (auto& line : diff) {
    const auto text = line.front() + printable(line.substr(1));
    switch (line.front()) {
      case '+':
        line = look.styled(terminal::Style::green, text);
        break;
      case '-':
        line = look.styled(terminal::Style::red, text);
        break;
      case '@':
        line = look.styled(terminal::Style::dim, text);
        break;
      default:
        line = text;
    }
  }
  return diff;
}

}  // namespace checker
