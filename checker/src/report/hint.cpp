#include "report/hint.hpp"

namespace checker {

std::vector<std::string> hint_lines(const Course& course, const Todo& todo, bool explanation,
                                    const Look& look) {
  using terminal::Style;
  std::vector<std::string> lines{look.styled(Style::bold, name_of_todo(todo.number)) + "  " +
                                 todo.title};
  lines.push_back(look.styled(Style::dim, course.file_of(todo).string()));
  lines.emplace_back();
  if (explanation && !todo.shape.empty()) {
    append(lines, paragraphs(todo.shape, 2, look));
    lines.emplace_back();
  }
  append(lines, paragraphs(explanation ? todo.explanation : todo.hint, 2, look));
  return lines;
}

}  // namespace checker
