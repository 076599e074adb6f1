#include <algorithm>

#include "course/course.hpp"
#include "report/terminal.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

int run_list(const Project& project, const Arguments& arguments) {
  const cxxopts::Options options("./workbook list",
                                 "Shows the steps and the state of their TODOs.\n");
  if (!parse(options, "", "", arguments)) return 0;

  const auto course = load_course(project.chapters());
  const auto all = present_standings(project, course);
  const auto look = present_look();
  for (const auto& step : course.steps) {
    std::string name = step.name;
    name.resize(std::max<size_t>(20, name.size() + 2), ' ');
    terminal::say(terminal::styled(terminal::Style::bold, name) + step.title);
    for (const int number : step.todos) {
      const auto& standing = all.at(number);
      for (const auto& line :
           todo_lines(course.todos.at(number), standing.state, standing.note, look)) {
        terminal::say(line);
      }
    }
  }
  return 0;
}

}  // namespace checker
