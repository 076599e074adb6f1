#include "verbs/todos.hpp"

#include <algorithm>
#include <cctype>

#include "support/error.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"

namespace checker {

namespace {

// "1 to 17 and 22 to 25": numbers are fixed before all chapters are there.
std::string numbers_of(const Course& course) {
  std::vector<std::string> runs;
  for (auto at = course.todos.begin(); at != course.todos.end();) {
    const int first = at->first;
    int last = first;
    while (++at != course.todos.end() && at->first == last + 1) last = at->first;
    runs.push_back(std::to_string(first) + (last > first ? " to " + std::to_string(last) : ""));
  }
  return join(runs, " and ");
}

}  // namespace

const Todo* named_todo(const Course& course, const Arguments& words, bool plain) {
  auto text = join(words, "");
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool says_todo = text.starts_with("todo");
  if (!says_todo && !plain) return nullptr;
  const auto digits = says_todo ? text.substr(4) : text;
  const bool number = !digits.empty() && digits.size() < 6 &&
                      std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c); });
  const auto found = number ? course.todos.find(std::stoi(digits)) : course.todos.end();
  if (found != course.todos.end()) return &found->second;
  if (course.todos.empty()) throw UsageError("This course has no TODOs.");
  throw UsageError("There is no TODO " + (digits.empty() ? "without a number" : digits) +
                   ". They are TODO " + numbers_of(course) + ".");
}

const Step& named_step(const Course& course, const Arguments& words) {
  if (const auto* todo = named_todo(course, words, false)) return course.step(todo->step);
  if (words.size() > 1) throw UsageError("\"" + words[1] + "\" is one argument too many.");
  return course.step(words.front());
}

Standings present_standings(const Project& project, const Course& course) {
  const auto memory = recall(project);
  if (!memory.remark.empty()) terminal::say(memory.remark + "\n");
  return standings(project, course, memory);
}

}  // namespace checker
