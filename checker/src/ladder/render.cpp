#include "ladder/render.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "ladder/picture.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

constexpr size_t widest = 100;

// The lines of a text in paragraphs, each line with `prefix` before it. Indented paragraphs are
// examples and stay as they are.
void append_paragraphs(std::vector<std::string>& lines, std::string_view text,
                       const std::string& prefix) {
  std::string paragraph;
  const auto flush = [&] {
    for (const auto& line : wrap(paragraph, widest - prefix.size())) lines.push_back(prefix + line);
    paragraph.clear();
  };
  for (const auto& line : split_lines(text)) {
    const bool example = line.starts_with("  ");
    if (example || trim(line).empty()) flush();
    if (example) {
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
  const std::string heading = begin + " TODO " + std::to_string(todo.number);
  if (which == Rendering::solution) return {heading + ": " + todo.done + "."};
  if (!first) return {heading + ", here too: " + todo.here_too};
  std::vector<std::string> lines{heading + ": " + todo.title + "."};
  append_paragraphs(lines, todo.text, begin + "   ");
  return lines;
}

std::vector<std::string> header_comment(const Source& source, const Step& step, Rendering which,
                                        bool job) {
  const std::string& begin = source.comment();
  const bool solution = which == Rendering::solution;
  std::vector<std::string> lines{begin + (solution ? " Solution of step " : " Step ") +
                                 step.digits() + ": " + step.title + "."};
  lines.push_back(begin);
  append_paragraphs(lines, step.intro, begin + " ");
  lines.push_back(begin);
  const std::string folder = solution ? "solutions/" + step.name : "sbatch";
  std::string run = step.run + (solution ? " --solution" : "");
  if (job) run = "eval \"$(./workbook site)\"; sbatch " + folder + "/" + step.name + ".sbatch";
  lines.push_back(begin + (job ? " Submit it: " : " Run it: ") + run);
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
  const std::pair<std::string_view, std::string> values[] = {
      {"@NAME@", step.name}, {"@PROGRAM@", program + step.digits()}};
  for (const auto& [name, value] : values) {
    line = replaced(std::move(line), name, value);
  }
  return line;
}

std::set<std::string> features_until(const Ladder& ladder, const Step& step, Rendering which) {
  const int last = which == Rendering::step ? step.number - 1 : step.number;
  std::set<std::string> features;
  for (const auto& other : ladder.steps) {
    if (other.number <= step.number) features.insert(other.given.begin(), other.given.end());
    if (other.number > last) continue;
    for (const int number : other.todos) {
      const auto& names = ladder.todos.at(number).features;
      features.insert(names.begin(), names.end());
    }
  }
  return features;
}

std::vector<RenderedLine> render_lines(const Ladder& ladder, const Source& source, const Step& step,
                                       Rendering which) {
  const bool job = &source == &ladder.job;
  std::vector<RenderedLine> lines;
  std::set<int> seen;
  const auto append = [&](const std::vector<std::string>& comment) {
    for (const auto& line : comment) lines.push_back({line});
  };
  for (const auto& line : source.select(features_until(ladder, step, which))) {
    if (line.header) {
      append(header_comment(source, step, which, job));
      if (!job) lines.emplace_back();
    } else if (line.todo == 0) {
      lines.push_back({substituted(line.text, step, which), line.mark});
    } else if (std::ranges::find(step.todos, line.todo) != step.todos.end()) {
      const bool first = seen.insert(line.todo).second;
      append(todo_comment(ladder.todos.at(line.todo), line.text + source.comment(), first, which));
    }
  }
  return lines;
}

std::string text_of(const std::vector<RenderedLine>& lines) {
  std::string text;
  for (const auto& line : lines) text += line.text + "\n";
  return squeeze_blank_lines(std::move(text));
}

std::string render(const Ladder& ladder, const Source& source, const Step& step, Rendering which) {
  return text_of(render_lines(ladder, source, step, which));
}

std::map<std::filesystem::path, std::string> render_all(const Ladder& ladder) {
  std::map<std::filesystem::path, std::string> files;
  const std::filesystem::path steps = "steps", solutions = "solutions", jobs = "sbatch";
  for (const auto& step : ladder.steps) {
    files[steps / step.name / "train.cpp"] = render(ladder, ladder.trainer, step, Rendering::step);
    files[solutions / step.name / "train.cpp"] =
        render(ladder, ladder.trainer, step, Rendering::solution);
    files[jobs / (step.name + ".sbatch")] = render(ladder, ladder.job, step, Rendering::step);
    if (ladder.edits_job(step)) {
      files[solutions / step.name / (step.name + ".sbatch")] =
          render(ladder, ladder.job, step, Rendering::solution);
    }
  }
  files[steps / "ladder.svg"] = picture(ladder);
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
    todo = word.starts_with(begin + " TODO ") || (todo && word.starts_with(begin + "   "));
    if (!todo) rest += line + "\n";
  }
  return squeeze_blank_lines(std::move(rest));
}

void check_continuity(const Ladder& whole) {
  Ladder ladder = whole;  // what comes ready-made comes between two steps
  for (auto& step : ladder.steps) step.given.clear();
  for (const auto* source : {&ladder.trainer, &ladder.job}) {
    for (size_t i = 1; i < ladder.steps.size(); ++i) {
      // The step before, under the name of this one, so that only code can differ.
      Step before = ladder.steps[i - 1];
      before.name = ladder.steps[i].name;
      const auto given = render(ladder, *source, ladder.steps[i], Rendering::step);
      const auto solved = replaced(render(ladder, *source, before, Rendering::solution),
                                   "bin/solution_", "bin/step_");
      if (strip_comments(given, source->comment()) == strip_comments(solved, source->comment())) {
        continue;
      }
      throw Error(source->file() + ": step " + ladder.steps[i].name +
                  " as given differs from the solution before it in more than comments; perhaps an "
                  "indented "
                  "comment or one that begins with TODO follows a TODO's place.");
    }
  }
}

}  // namespace checker
