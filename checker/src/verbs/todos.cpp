#include "verbs/todos.hpp"

#include <algorithm>
#include <cctype>

#include "support/error.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"

namespace checker {

namespace {

// "1 to 17, 22 to 25 and C1 to C11": numbers are fixed before all chapters are there.
std::string numbers_of(const Course& course) {
  std::vector<std::string> runs;
  for (auto at = course.todos.begin(); at != course.todos.end();) {
    const int first = at->first;
    int last = first;
    while (++at != course.todos.end() && at->first == last + 1) last = at->first;
    runs.push_back(label_of_todo(first) + (last > first ? " to " + label_of_todo(last) : ""));
  }
  const auto last = runs.back();
  runs.pop_back();
  return runs.empty() ? last : join(runs, ", ") + " and " + last;
}

Named of_todo(const Course& course, const std::string& label) {
  const auto number = todo_labelled(label);
  const auto found = number ? course.todos.find(*number) : course.todos.end();
  if (found != course.todos.end()) return {&course.step(found->second.step), &found->second};
  if (course.todos.empty()) throw UsageError("This course has no TODOs.");
  throw UsageError("There is no TODO " + (label.empty() ? "without a number" : label) +
                   ". They are TODO " + numbers_of(course) + ".");
}

}  // namespace

bool is_one_name(const Arguments& words) {
  auto first = words.front();
  std::ranges::transform(first, first.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return words.size() == 1 || first == "todo" || first == "step";
}

Named named(const Course& course, const Arguments& words, Bare bare) {
  auto text = join(words, "");
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (text.starts_with("todo")) return of_todo(course, text.substr(4));
  if (text.starts_with("step")) return {&course.step(text.substr(4)), nullptr};
  if (words.size() > 1) throw UsageError("\"" + words[1] + "\" is an extra argument.");
  if (bare == Bare::todo && !text.starts_with('0') && todo_labelled(text)) {
    return of_todo(course, text);
  }
  const bool letters = text.find_first_of("0123456789") == text.npos;
  const auto is_named = [&](const Step& step) { return step.name == words.front(); };
  if (bare == Bare::todo && letters && std::ranges::none_of(course.steps, is_named)) {
    throw UsageError("\"" + words.front() + "\" is not a TODO. They are TODO " +
                     numbers_of(course) + ".");
  }
  const auto& step = course.step(words.front());
  const bool both = step.is_beside() && !step.todos.empty();
  return {&step, both ? &course.todos.at(step.todos.front()) : nullptr};
}

const Step& named_step(const Course& course, const Arguments& words) {
  return *named(course, words, Bare::step).step;
}

const Todo& named_todo(const Course& course, const Arguments& words, const Standings& all) {
  const auto [step, todo] = named(course, words, Bare::todo);
  if (todo) return *todo;
  if (step->todos.empty()) {
    throw UsageError("Step " + step->name + " has no TODOs. Which TODO? They are TODO " +
                     numbers_of(course) + ".");
  }
  const auto next =
      std::ranges::find_if(step->todos, [&](int number) { return all.at(number).needs_work(); });
  return course.todos.at(next == step->todos.end() ? step->todos.front() : *next);
}

std::vector<const Step*> steps_of_named_chapter(const Course& course, const Arguments& words) {
  std::vector<const Step*> steps;
  for (const auto& step : course.steps) {
    if (words == Arguments{step.chapter}) steps.push_back(&step);
  }
  return steps;
}

Standings present_standings(const Project& project, const Course& course) {
  const auto memory = recall(project);
  if (!memory.remark.empty()) terminal::say(memory.remark + "\n");
  return standings(project, course, memory);
}

}  // namespace checker
