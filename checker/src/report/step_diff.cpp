#include "report/step_diff.hpp"

#include <set>

#include "course/render.hpp"
#include "report/diff.hpp"
#include "state/step_files.hpp"
#include "support/files.hpp"

namespace checker {

namespace {

// The code of a step's file with these features, without the comments that rendering adds.
std::string code_with(const CourseFile& file, const Step& step,
                      const std::set<std::string>& features) {
  std::string text;
  for (const auto& line : file.source.select(features)) {
    if (line.header || line.todo != 0) continue;
    text += substituted(line.text, step, Rendering::step) + "\n";
  }
  return text;
}

}  // namespace

std::vector<std::string> step_diff(const Project& project, const Course& course, const Step& step,
                                   const Look& look) {
  using terminal::Style;
  std::vector<std::string> lines;
  bool differs = false;
  for (const auto& file : step_files(course, step)) {
    const auto diff = code_diff(read_file(project.source / file.path), file.solved, file.comment);
    if (!lines.empty()) lines.emplace_back();
    if (diff.empty()) {
      lines.push_back(file.path.string() + ": the same as the solution, apart from comments.");
      continue;
    }
    differs = true;
    lines.push_back(look.styled(Style::bold, "--- " + file.path.string()));
    lines.push_back(look.styled(Style::bold, "+++ " + file.solution.string()));
    append(lines, styled_diff(diff, look));
  }
  if (differs) {
    const auto remark =
        "This shows the solution: lines with - are yours, lines with + are the reference's.";
    lines.insert(lines.begin(), {remark, ""});
  }
  return lines;
}

std::vector<std::string> todo_diff(const Course& course, const Todo& todo, const Look& look) {
  using terminal::Style;
  const auto& step = course.step_of(todo);
  const auto& file = course.source_of(todo);
  auto before = features_until(course, step, Rendering::step);
  for (const int other : step.todos) {
    if (other >= todo.number) break;
    const auto& features = course.todos.at(other).features;
    before.insert(features.begin(), features.end());
  }
  for (const auto& feature : todo.features) before.erase(feature);
  auto after = before;
  after.insert(todo.features.begin(), todo.features.end());

  const auto name = name_of_todo(todo.number);
  std::vector<std::string> lines{
      "This shows the answer to " + name + ": remove lines with -, add lines with +.", "",
      look.styled(Style::bold, course.file_of(todo).string() + ", " + todo.title)};
  auto diff =
      code_diff(code_with(file, step, before), code_with(file, step, after), file.source.comment());
  // Numbers of lines would be those of a file that nobody has.
  for (auto& line : diff) {
    if (line.starts_with("@@")) line = "@@ at " + name + " @@";
  }
  append(lines, styled_diff(diff, look));
  return lines;
}

}  // namespace checker
