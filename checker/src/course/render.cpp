#include "course/render.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "course/picture.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

constexpr size_t widest = 100;

// The lines of a text in paragraphs, each line with `prefix` before it, and between paragraphs an
// empty comment. Indented paragraphs are examples and stay as they are.
void append_paragraphs(std::vector<std::string>& lines, std::string_view text,
                       const std::string& prefix) {
  const std::string empty(prefix.substr(0, prefix.find_last_not_of(' ') + 1));
  std::string paragraph;
  const auto flush = [&] {
    for (const auto& line : wrap(paragraph, widest - prefix.size())) lines.push_back(prefix + line);
    paragraph.clear();
  };
  for (const auto& line : split_lines(text)) {
    const bool example = line.starts_with("  ");
    if (example || trim(line).empty()) flush();
    if (trim(line).empty()) {
      lines.push_back(empty);
    } else if (example) {
      lines.push_back(prefix + line);
    } else {
      paragraph += line + "\n";
    }
  }
  flush();
}

// What stands at a TODO's place. Lines after the first are set in by two more blanks than any other
// comment, which is how strip_comments knows where a TODO's comment ends.
std::vector<std::string> todo_comment(const Todo& todo, const std::string& begin, bool first,
                                      Rendering which) {
  const std::string heading = begin + " " + name_of_todo(todo.number);
  if (which == Rendering::solution) return {heading + ": " + todo.done + "."};
  if (!first) return {heading + ", here too: " + todo.here_too};
  std::vector<std::string> lines{heading + ": " + todo.title + "."};
  append_paragraphs(lines, todo.text, begin + "   ");
  return lines;
}

std::vector<std::string> header_comment(const CourseFile& file, const Step& step, Rendering which) {
  const bool job = file.kind == FileKind::job;
  const std::string& begin = file.source.comment();
  const bool solution = which == Rendering::solution;
  const std::string name = (step.is_beside() ? "exercise " : "step ") + step.label();
  std::vector<std::string> lines{begin + " Solution of " + name + ": " + step.title + "."};
  if (!solution) {
    lines = {begin + (step.is_beside() ? " Exercise " : " Step ") + step.label() + ": " +
             step.title + "."};
  }
  lines.push_back(begin);
  append_paragraphs(lines, step.intro, begin + " ");
  lines.push_back(begin);
  const std::string folder = solution ? "solutions/" + step.name : "sbatch";
  std::string run = step.run + (solution ? " --solution" : "");
  if (job) run = "eval \"$(./workbook site)\"; sbatch " + folder + "/" + step.name + ".sbatch";
  lines.push_back(begin + (job ? " Submit it: " : " Run it: ") + run);
  const auto origin = "checker/chapters/" + step.chapter + "/" + file.name;
  lines.push_back(begin + " Made by ./workbook render from " + origin +
                  (solution ? "." : "; it is yours now."));
  return lines;
}

// Where lines vanish, the blank ones around them meet: one of them is enough.
std::string squeeze_blank_lines(std::string text) {
  for (size_t at = 0; (at = text.find("\n\n\n", at)) != text.npos;) text.erase(at, 1);
  return text;
}

}  // namespace

std::string substituted(std::string line, const Step& step, Rendering which) {
  const std::string program = which == Rendering::solution ? "solution_" : "step_";
  const std::pair<std::string_view, std::string> values[] = {{"@NAME@", step.name},
                                                             {"@PROGRAM@", program + step.label()}};
  for (const auto& [name, value] : values) {
    line = replaced(std::move(line), name, value);
  }
  return line;
}

std::set<std::string> features_until(const Course& course, const Step& step, Rendering which) {
  auto features = step.parent.empty()
                      ? std::set<std::string>{}
                      : features_until(course, course.step(step.parent), Rendering::solution);
  features.insert(step.given.begin(), step.given.end());
  if (which == Rendering::step) return features;
  for (const int number : step.todos) {
    const auto& names = course.todos.at(number).features;
    features.insert(names.begin(), names.end());
  }
  return features;
}

const Step& first_step_with(const Course& course, std::string_view feature) {
  for (const auto& step : course.steps) {
    const bool has =
        features_until(course, step, Rendering::solution).contains(std::string(feature));
    if (has && course.job_of(step)) return step;
  }
  throw Error("No step of the course has the feature " + std::string(feature) + ".");
}

std::vector<RenderedLine> render_lines(const Course& course, const CourseFile& file,
                                       const Step& step, Rendering which) {
  const bool job = file.kind == FileKind::job;
  const auto& source = file.source;
  std::vector<RenderedLine> lines;
  std::set<int> seen;
  const auto append = [&](const std::vector<std::string>& comment) {
    for (const auto& line : comment) lines.push_back({line});
  };
  for (const auto& line : source.select(features_until(course, step, which))) {
    if (line.header) {
      append(header_comment(file, step, which));
      if (!job) lines.emplace_back();
    } else if (line.todo == 0) {
      lines.push_back({substituted(line.text, step, which), line.mark});
    } else if (std::ranges::find(step.todos, line.todo) != step.todos.end()) {
      const bool first = seen.insert(line.todo).second;
      append(todo_comment(course.todos.at(line.todo), line.text + source.comment(), first, which));
    }
  }
  return lines;
}

std::string text_of(const std::vector<RenderedLine>& lines) {
  std::string text;
  for (const auto& line : lines) text += line.text + "\n";
  return squeeze_blank_lines(std::move(text));
}

std::string render(const Course& course, const CourseFile& file, const Step& step,
                   Rendering which) {
  return text_of(render_lines(course, file, step, which));
}

std::map<std::filesystem::path, std::string> render_all(const Course& course) {
  std::map<std::filesystem::path, std::string> files;
  std::string programs = "# The steps and their programs' files. Generated: ./workbook render\n";
  for (const auto& step : course.steps) {
    for (const auto* file : course.files_of(step)) {
      const auto add = [&](bool solution, Rendering which) {
        files[course.path_of(step, *file, solution)] = render(course, *file, step, which);
      };
      add(false, Rendering::step);
      if (file->kind != FileKind::job || course.edits(step, *file)) add(true, Rendering::solution);
    }
    programs += step.name + " " + course.program_of(step).name + "\n";
  }
  files[kProgramList] = programs;
  files["steps/course.svg"] = picture(course);
  return files;
}

std::string strip_comments(std::string_view text, std::string_view comment) {
  const std::string begin(comment);
  std::string rest;
  bool header = true, todo = false;
  for (const auto& line : split_lines(text)) {
    const auto word = trim(line);
    const bool shebang = word.starts_with("#!");
    header = header && (shebang || word == begin || word.starts_with(begin + " "));
    if (header && !shebang) continue;
    const bool goes_on = word == begin || word.starts_with(begin + "   ");
    todo = word.starts_with(begin + " TODO ") || (todo && goes_on);
    if (!todo) rest += line + "\n";
  }
  return squeeze_blank_lines(std::move(rest));
}

void check_continuity(const Course& course) {
  for (auto step : course.steps) {
    if (step.parent.empty()) continue;
    step.given.clear();  // what comes ready-made comes between two steps
    const auto& parent = course.step(step.parent);
    for (const auto* before : course.files_of(parent)) {
      const auto files = course.files_of(step);
      const auto here = std::ranges::find(files, before->name, &CourseFile::name);
      if (here == files.end()) continue;  // the step does not have it
      // The parent under the name of this step, so that only code can differ.
      Step solved_step = parent;
      solved_step.name = step.name;
      const auto& comment = before->source.comment();
      const auto given = render(course, **here, step, Rendering::step);
      const auto solved = replaced(render(course, *before, solved_step, Rendering::solution),
                                   "bin/solution_", "bin/step_");
      if (strip_comments(given, comment) == strip_comments(solved, comment)) continue;
      throw Error((*here)->source.file() + ": step " + step.name +
                  " starts with other code than the solution of " + parent.name +
                  " in more than comments; perhaps an indented comment or one that begins with "
                  "TODO follows a TODO's place.");
    }
  }
}

}  // namespace checker
