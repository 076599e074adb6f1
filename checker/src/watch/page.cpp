#include "watch/page.hpp"

#include <algorithm>

#include "report/hint.hpp"
#include "report/step_diff.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

using terminal::Style;

constexpr size_t frame = 5;  // lines around the pane

std::vector<std::string> known_lines(const View& view, const Course& course, const Look& look) {
  std::vector<std::string> lines{look.styled(Style::bold, view.step->name) + "  " +
                                 view.step->title};
  lines.emplace_back();
  for (const int number : view.step->todos) {
    const auto& standing = view.standings.at(number);
    append(lines, todo_lines(course.todos.at(number), standing.state, standing.note, look));
  }
  return lines;
}

std::vector<std::string> verdict_lines(const View& view, const Course& course, const Look& look) {
  if (!view.error.empty()) {
    std::vector<std::string> lines{look.styled(Style::red, "This could not be checked:")};
    lines.emplace_back();
    append(lines, paragraphs(view.error, 2, look));
    return lines;
  }
  return view.report ? report_lines(*view.report, course, look) : known_lines(view, course, look);
}

std::vector<std::string> pane_lines(const View& view, const Project& project, const Course& course,
                                    const Look& look) {
  switch (view.pane) {
    case Pane::verdict:
      break;
    case Pane::hint:
      return hint_lines(course, todo_in_hand(view, course), HintPart::hint, look);
    case Pane::shape:
      return hint_lines(course, todo_in_hand(view, course), HintPart::shape, look);
    case Pane::explanation:
      return hint_lines(course, todo_in_hand(view, course), HintPart::explanation, look);
    case Pane::solution:
      try {
        return step_diff(project, course, *view.step, look);
      } catch (const Error& error) {
        return {error.what()};  // the file is just being replaced
      }
  }
  return verdict_lines(view, course, look);
}

// The part of the lines that is to be seen, and if there is more, a line that says so.
std::vector<std::string> visible(const std::vector<std::string>& lines, size_t page, size_t room,
                                 const Look& look) {
  if (lines.size() <= room) return lines;
  const size_t part = std::max<size_t>(2, room) - 1;
  const size_t pages = (lines.size() + part - 1) / part;
  const size_t begin = page % pages * part;
  std::vector<std::string> seen(
      lines.begin() + static_cast<std::ptrdiff_t>(begin),
      lines.begin() + static_cast<std::ptrdiff_t>(std::min(lines.size(), begin + part)));
  seen.push_back(look.styled(Style::dim, "  page " + std::to_string(page % pages + 1) + " of " +
                                             std::to_string(pages) + ", space for the next"));
  return seen;
}

std::string status_line(const View& view, const Look& look) {
  std::string line;
  if (view.judging) {
    line = "judging" + (view.stage.empty() ? "" : ": " + view.stage) + " ...";
    if (view.outdated) line += "  This verdict is about an older version of your file.";
    line = look.styled(Style::yellow, line);
  } else if (view.report) {
    line = summary(*view.report, *view.step);
  }
  if (line.empty() || view.remark.empty()) return line + view.remark;
  return line + "  " + view.remark;
}

std::string key_line(const View& view, const Look& look) {
  const auto key = [&](const char* letter, bool shown, const char* what) {
    return look.styled(Style::bold, letter) + " " + (shown ? "verdict" : what);
  };
  const auto more = view.pane == Pane::hint ? "shape" : view.pane == Pane::shape ? "more" : "hint";
  return key("h", view.pane == Pane::explanation, more) + "   " +
         key("d", view.pane == Pane::solution, "diff") + "   " + key("n", false, "next") + "   " +
         key("p", false, "previous") + "   " + key("r", false, "again") + "   " +
         key("q", false, "quit");
}

}  // namespace

const Todo& todo_in_hand(const View& view, const Course& course) {
  if (view.report) {
    if (const auto todo = todo_to_fix(*view.report)) return course.todos.at(*todo);
  } else {
    for (const int number : view.step->todos) {
      if (view.standings.at(number).needs_work()) return course.todos.at(number);
    }
  }
  return course.todos.at(view.step->todos.front());
}

std::string summary(const Report& report, const Step& step) {
  if (report.compile_error) return "It does not compile.";
  if (report.passed()) {
    return step.is_beside() ? step.label() + " is done; n leads to the next exercise."
                            : "Step " + step.label() + " is done.";
  }
  size_t done = 0, own = 0;
  for (const auto& verdict : report.verdicts) {
    if (std::ranges::find(step.todos, verdict.todo) == step.todos.end()) continue;
    ++own;
    done += verdict.state == State::done ? 1 : 0;
  }
  const auto count = std::to_string(done) + " of " + std::to_string(own) + " done";
  const auto fix = todo_to_fix(report);
  if (!fix) return count + "; the others could not be checked.";
  const bool wrong = report.first_finding() != nullptr;
  return name_of_todo(*fix) + (wrong ? " is wrong; " : " is open; ") + count + ".";
}

std::vector<std::string> page_lines(const View& view, const Project& project, const Course& course,
                                    const Look& look, size_t rows) {
  std::string files;
  for (const auto& path : step_paths(course, *view.step)) {
    files += (files.empty() ? "" : " and ") + path.string();
  }
  std::vector<std::string> lines{look.styled(Style::dim, "Checking " + files + " on every save.")};
  lines.emplace_back();
  append(lines, visible(pane_lines(view, project, course, look), view.page,
                        rows > frame ? rows - frame : 1, look));
  lines.emplace_back();
  lines.push_back(status_line(view, look));
  lines.push_back(key_line(view, look));
  return lines;
}

}  // namespace checker
