#include <algorithm>

#include "report/hint.hpp"
#include "report/terminal.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

namespace {

// "02_setup            ✓✗○    1 of 3"
std::string step_line(const Step& step, const Standings& all, size_t names, size_t cells,
                      const Look& look) {
  std::string line = "  " + step.name + std::string(names - step.name.size() + 2, ' ');
  if (step.todos.empty()) return line + look.styled(terminal::Style::dim, "to read and to run");
  for (const int todo : step.todos) line += mark(all.at(todo).state, look);
  const auto done = count_done(all, step.todos);
  line += std::string(cells - std::min(cells, step.todos.size()) + 2, ' ') + std::to_string(done) +
          " of " + std::to_string(step.todos.size());
  if (done == step.todos.size()) return line;
  const auto count = [&](auto what) {
    return std::ranges::count_if(step.todos, [&](int todo) { return what(all.at(todo)); });
  };
  const auto wrong = count([](const TodoStatus& one) { return one.state == State::wrong; });
  const auto stale = count([](const TodoStatus& one) { return one.stale; });
  if (wrong > 0) line += look.styled(terminal::Style::red, "  " + std::to_string(wrong) + " wrong");
  if (stale > 0) {
    line += look.styled(terminal::Style::dim, "  " + std::to_string(stale) + " not checked yet");
  }
  return line;
}

// The steps; and the exercises beside them, those of a chapter in one row.
std::vector<Step> rows_of(const Course& course) {
  std::vector<Step> rows, beside;
  for (const auto& step : course.steps) {
    if (!step.is_beside()) {
      rows.push_back(step);
    } else if (beside.empty() || beside.back().chapter != step.chapter) {
      beside.push_back(step);
      beside.back().name = step.name.substr(0, 1) + " " + step.chapter;
    } else {
      beside.back().todos.insert(beside.back().todos.end(), step.todos.begin(), step.todos.end());
    }
  }
  rows.insert(rows.end(), beside.begin(), beside.end());
  return rows;
}

}  // namespace

int run_progress(const Project& project, const Arguments& arguments) {
  const cxxopts::Options options("./workbook progress", "Shows how far you are.\n");
  if (!parse(options, "", "", arguments)) return 0;

  const auto course = load_course(project.chapters());
  const auto all = present_standings(project, course);
  const auto look = present_look();
  const auto rows = rows_of(course);
  size_t names = 0, cells = 0, done = 0, todos = 0;
  for (const auto& step : rows) {
    names = std::max(names, step.name.size());
    if (step.is_beside()) continue;
    cells = std::max(cells, step.todos.size());
    done += count_done(all, step.todos);
    todos += step.todos.size();
  }
  terminal::say(
      look.styled(terminal::Style::bold, std::to_string(done) + " of " + count_of(todos, "TODO")) +
      " done\n");
  for (const auto& step : rows) {
    terminal::say(step_line(step, all, names, cells, look));
  }
  terminal::say("");
  const auto help = help_lines(course, recall(project).help, look);
  for (const auto& line : help) terminal::say(line);
  if (!help.empty()) terminal::say("");
  for (const auto& line : next_lines(course, next_todo(all), look)) terminal::say(line);
  return 0;
}

}  // namespace checker
