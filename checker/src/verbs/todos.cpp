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

}  // namespace

const Todo* named_todo(const Course& course, const Arguments& words, bool plain) {
  auto text = join(words, "");
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool says_todo = text.starts_with("todo");
  if (!says_todo && !plain) return nullptr;
  const auto label = says_todo ? text.substr(4) : text;
  const auto number = todo_labelled(label);
  const auto found = number ? course.todos.find(*number) : course.todos.end();
  if (found != course.todos.end()) return &found->second;
  if (course.todos.empty()) throw UsageError("This course has no TODOs.");
  throw UsageError("There is no TODO " + (label.empty() ? "without a number" : label) +
                   ". They are TODO " + numbers_of(course) + ".");
}

const Step& named_step(const Course& course, const Arguments& words) {
  if (const auto* todo = named_todo(course, words, false)) return course.step(todo->step);
  if (words.size() > 1) throw UsageError("\"" + words[1] + "\" is one argument too many.");
  return course.step(words.front());
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
