#include "watch/watch.hpp"

#include <algorithm>

#include "support/error.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

namespace {

// The step of the first TODO to work on; if all are done, the last step that has any.
const Step& step_to_watch(const Project& project, const Course& course) {
  if (course.todos.empty()) throw Error("This course has no TODOs: there is nothing to watch.");
  const auto next = next_todo(present_standings(project, course));
  const auto& todo = next ? course.todos.at(*next) : course.todos.rbegin()->second;
  return course.step(todo.step);
}

}  // namespace

int run_watch(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook watch", "Judges a step again whenever you save it.\n");
  options.add_options("hidden")("step", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"step"});
  const auto parsed =
      parse(options, "[NN]", "Without a step: that of the first TODO that is not done.", arguments);
  if (!parsed) return 0;

  const auto course = load_course(project.chapters());
  const auto& step = parsed->count("step")
                         ? named_step(course, (*parsed)["step"].as<std::vector<std::string>>())
                         : step_to_watch(project, course);
  if (step.todos.empty()) {
    throw UsageError("Step " + step.name + " has no TODOs: there is nothing to watch.");
  }
  return watch(project, course, step, judge_of(project));
}

}  // namespace checker
