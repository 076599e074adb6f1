#include "report/step_diff.hpp"

#include "support/error.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

int run_diff(const Project& project, const Arguments& arguments) {
  cxxopts::Options options(
      "./workbook diff",
      "Shows the solution, as the difference between your file and the reference.\n");
  options.add_options("hidden")("step", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"step"});
  const auto parsed =
      parse(options, "n | NN",
            "\"8\" is a TODO: you see only its lines, in the original file. \"08\" or \"step 8\" "
            "is a whole\nstep, compared with your file. Comments and empty lines do not count. "
            "Other correct ways\nexist, so a difference may be right. Only ./workbook check tells.",
            arguments);
  if (!parsed) return 0;
  if (!parsed->count("step")) {
    throw UsageError(
        "Which TODO or step? For example: ./workbook diff 8 for TODO 8, ./workbook diff 02 for "
        "step 02.");
  }

  const auto course = load_course(project.chapters());
  const auto [step, todo] =
      named(course, (*parsed)["step"].as<std::vector<std::string>>(), Bare::todo);
  const auto look = present_look();
  const bool of_one = todo && !step->is_beside();
  for (const auto& line :
       of_one ? todo_diff(course, *todo, look) : step_diff(project, course, *step, look)) {
    terminal::say(line);
  }
  const std::vector<int> shown = of_one ? std::vector<int>{todo->number} : step->todos;
  remember_help(project, undone(shown, present_standings(project, course)), Help::answer);
  return 0;
}

}  // namespace checker
