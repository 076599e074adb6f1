#include "report/hint.hpp"

#include "support/error.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

int run_hint(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook hint", "Gives a hint on one TODO.\n");
  options.add_options()("more", "Explain what is behind it");
  options.add_options("hidden")("todo", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"todo"});
  const auto parsed = parse(options, "[n] [--more]",
                            "Without a number: on the first TODO that is not done.", arguments);
  if (!parsed) return 0;

  const auto course = load_course(project.chapters());
  const auto all = present_standings(project, course);
  const Todo* todo = nullptr;
  if (parsed->count("todo")) {
    todo = &named_todo(course, (*parsed)["todo"].as<std::vector<std::string>>(), all);
  } else if (const auto next = next_todo(all)) {
    todo = &course.todos.at(*next);
  } else {
    throw UsageError("All TODOs are done. Which one? For example: ./workbook hint 5.");
  }
  const auto look = present_look();
  const bool more = parsed->count("more") > 0;
  for (const auto& line : hint_lines(course, *todo, more, look)) terminal::say(line);
  const auto number = label_of_todo(todo->number);
  terminal::say("");
  if (!more) terminal::say("What is behind it: ./workbook hint " + number + " --more");
  if (is_exercise(todo->number)) return 0;  // it has no slide
  terminal::say("Its slide: ./workbook slides " + number);
  return 0;
}

}  // namespace checker
