#include "watch/watch.hpp"

#include <algorithm>

#include "support/error.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

namespace {

// The first of these steps with a TODO to work on; if all are done, the first.
const Step& first_to_watch(const Project& project, const std::vector<const Step*>& steps,
                           const Course& course) {
  const auto all = present_standings(project, course);
  const auto open = std::ranges::find_if(
      steps, [&](const Step* step) { return count_done(all, step->todos) < step->todos.size(); });
  return open == steps.end() ? *steps.front() : **open;
}

// The step of the first TODO to work on; if all are done, the last step that has any.
const Step& step_to_watch(const Project& project, const Course& course) {
  if (course.todos.empty()) throw Error("This course has no TODOs, so there is nothing to watch.");
  const auto next = next_todo(present_standings(project, course));
  if (next) return course.step(course.todos.at(*next).step);
  const auto last = std::find_if(course.todos.rbegin(), course.todos.rend(),
                                 [](const auto& entry) { return !is_exercise(entry.first); });
  return course.step((last == course.todos.rend() ? *course.todos.rbegin() : *last).second.step);
}

std::optional<cxxopts::ParseResult> parse_watch(const cxxopts::Options& options,
                                                const Arguments& arguments) try {
  return parse(
      options, "[NN | CHAPTER]",
      "Without a step, it takes the step with the first open TODO. With a chapter, it takes "
      "the\nfirst open step there. ./workbook watch collectives starts the exercises.",
      arguments);
} catch (const UsageError& error) {
  const std::string what = error.what();
  if (what.find("\"once\" does not exist") == what.npos) throw;
  throw UsageError(what + " ./workbook check does that.");
}

}  // namespace

int run_watch(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook watch", "Checks a step every time you save it.\n");
  options.add_options("hidden")("step", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"step"});
  const auto parsed = parse_watch(options, arguments);
  if (!parsed) return 0;

  const auto course = load_course(project.chapters());
  Arguments words;
  if (parsed->count("step")) words = (*parsed)["step"].as<std::vector<std::string>>();
  const auto chapter = steps_of_named_chapter(course, words);
  const auto& step = words.empty()     ? step_to_watch(project, course)
                     : chapter.empty() ? named_step(course, words)
                                       : first_to_watch(project, chapter, course);
  if (step.todos.empty()) {
    throw UsageError("Step " + step.name + " has no TODOs, so there is nothing to watch.");
  }
  return watch(project, course, step, judge_of(project));
}

}  // namespace checker
