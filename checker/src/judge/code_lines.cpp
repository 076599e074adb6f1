#include "judge/code_lines.hpp"

#include <algorithm>
#include <cctype>

#include "support/text.hpp"

namespace checker {

namespace {

// Leaves out comments of C++, which begin and end anywhere. Where a line goes on behind a comment
// of several lines, it has the number of its begin.
NumberedLines without_comments(std::string_view text) {
  std::string code;
  std::vector<int> numbers{1};
  size_t counted = 0;  // characters whose line ends are in `number`
  int number = 1;
  const auto end_line = [&](size_t at) {
    code += '\n';
    number += static_cast<int>(std::ranges::count(text.substr(counted, at + 1 - counted), '\n'));
    counted = at + 1;
    numbers.push_back(number);
  };
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto rest = text.substr(i);
    if (quote != 0) {
      if (text[i] == '\\' && rest.size() > 1 && rest[1] != '\n') {
        code += rest.substr(0, 2);
        ++i;
        continue;
      }
      if (text[i] == quote || text[i] == '\n') quote = 0;
    } else if (rest.starts_with("//") || rest.starts_with("/*")) {
      const bool block = rest[1] == '*';
      const auto end = block ? text.find("*/", i + 2) : text.find('\n', i);
      if (end == text.npos) break;
      i = block ? end + 1 : end;
      if (block) code += ' ';
      if (!block) end_line(end);
      continue;
    } else if (text[i] == '"' || text[i] == '\'') {
      // Between digits it is a separator: 1'000.
      const bool separator =
          text[i] == '\'' && i > 0 && std::isxdigit(static_cast<unsigned char>(text[i - 1])) != 0;
      quote = separator ? char{0} : text[i];
    }
    if (text[i] == '\n') {
      end_line(i);
    } else {
      code += text[i];
    }
  }
  return {split_lines(code), numbers};
}

NumberedLines numbered(std::string_view text) {
  NumberedLines lines{split_lines(text), {}};
  for (size_t i = 0; i < lines.texts.size(); ++i) lines.numbers.push_back(static_cast<int>(i) + 1);
  return lines;
}

// In a script comments have lines of their own; "#SBATCH" and "#!" are none.
bool is_script_comment(std::string_view line) { return line == "#" || line.starts_with("# "); }

}  // namespace

NumberedLines code_of(std::string_view text, const std::string& comment) {
  const bool script = comment == "#";
  const auto lines = script ? numbered(text) : without_comments(text);
  NumberedLines code;
  for (size_t i = 0; i < lines.texts.size(); ++i) {
    const auto line = trim(lines.texts[i]);
    if (line.empty() || (script && is_script_comment(line))) continue;
    code.texts.emplace_back(line);
    code.numbers.push_back(lines.numbers[i]);
  }
  return code;
}

}  // namespace checker
