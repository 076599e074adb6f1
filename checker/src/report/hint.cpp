#include "report/hint.hpp"

namespace checker {

std::vector<std::string> hint_lines(const Course& course, const Todo& todo, HintPart part,
                                    const Look& look) {
  using terminal::Style;
  std::vector<std::string> lines{look.styled(Style::bold, name_of_todo(todo.number)) + "  " +
                                 todo.title};
  lines.push_back(look.styled(Style::dim, course.file_of(todo).string()));
  lines.emplace_back();
  if (part == HintPart::explanation) {
    append(lines, paragraphs(todo.explanation, 2, look));
    return lines;
  }
  append(lines, paragraphs(todo.hint, 2, look));
  if (part == HintPart::shape && !todo.shape.empty()) {
    lines.emplace_back();
    append(lines, paragraphs(todo.shape, 2, look));
  }
  return lines;
}

std::vector<std::string> help_lines(const Course& course, const std::map<int, Help>& help,
                                    const Look& look) {
  std::map<Help, std::string> numbers;
  for (const auto& [todo, used] : help) {
    if (!course.todos.contains(todo)) continue;
    auto& text = numbers[used];
    text += (text.empty() ? "" : ", ") + label_of_todo(todo);
  }
  std::string line;
  const std::pair<Help, const char*> kinds[] = {
      {Help::hint, "hint"}, {Help::shape, "shape of the code"}, {Help::answer, "answer"}};
  for (const auto& [kind, name] : kinds) {
    if (!numbers.contains(kind)) continue;
    line += (line.empty() ? "Help used: " : "; ") + std::string(name) + ": TODO " + numbers[kind];
  }
  return line.empty() ? std::vector<std::string>{} : hanging_line(line + ".", 0, look);
}

}  // namespace checker
