#include "report/hint.hpp"

#include "support/error.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

namespace {

// The first time the hint, from the second time on the shape of the code as well.
HintPart part_of(const Project& project, const Todo& todo, bool more) {
  if (more) return HintPart::explanation;
  const auto help = recall(project).help;
  const auto used = help.find(todo.number);
  return used == help.end() || todo.shape.empty() ? HintPart::hint : HintPart::shape;
}

void say_what_else_there_is(const Todo& todo, HintPart part) {
  const auto number = label_of_todo(todo.number);
  terminal::say("");
  if (part == HintPart::hint && !todo.shape.empty()) {
    terminal::say("The shape of the code: ./workbook hint " + number + ", once more");
  }
  if (part == HintPart::shape) terminal::say("The answer: ./workbook diff " + number);
  if (part != HintPart::explanation) {
    terminal::say("Explanation: ./workbook hint " + number + " --more");
  }
  if (is_exercise(todo.number)) return;  // it has no slide
  terminal::say("Its slide: ./workbook slides " + number);
}

}  // namespace

int run_hint(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook hint", "Gives a hint on one TODO.\n");
  options.add_options()("more", "Explain why it works");
  options.add_options("hidden")("todo", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"todo"});
  const auto parsed =
      parse(options, "[n] [--more]",
            "Without a number, it takes the first open TODO. The first hint gives a direction, the "
            "second\none the shape of the code. ./workbook diff shows the answer.",
            arguments);
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
  const auto part = part_of(project, *todo, parsed->count("more") > 0);
  for (const auto& line : hint_lines(course, *todo, part, present_look())) terminal::say(line);
  say_what_else_there_is(*todo, part);
  if (part == HintPart::hint) remember_help(project, {todo->number}, Help::hint);
  if (part == HintPart::shape) remember_help(project, {todo->number}, Help::shape);
  return 0;
}

}  // namespace checker
