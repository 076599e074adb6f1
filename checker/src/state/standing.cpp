#include "state/standing.hpp"

#include <algorithm>

#include "support/text.hpp"

namespace checker {

namespace {

TodoStatus standing_of(const std::string& present, const StepFile& file,
                       const Remembered* remembered) {
  if (present.empty()) return {State::open, false, file.path.string() + " is not there"};
  if (present == fingerprint(file.given)) return {};
  if (!remembered) return {State::not_judged, true, "edited, not judged yet"};
  if (remembered->fingerprint != present || remembered->file != file.path) {
    return {State::not_judged, true, "changed since it was judged"};
  }
  const auto& reason = remembered->reason;
  const bool silent = remembered->state == State::not_judged && reason.empty();
  return {remembered->state, false, silent ? "not judged" : reason};
}

}  // namespace

Standings standings(const Project& project, const Course& course, const Memory& memory) {
  Standings all;
  for (const auto& step : course.steps) {
    for (const auto& file : step_files(course, step)) {
      const auto present = fingerprint_of(project, file.path);
      for (const int number : step.todos) {
        if (course.file_of(course.todos.at(number)) != file.path) continue;
        const auto known = memory.todos.find(number);
        all[number] =
            standing_of(present, file, known == memory.todos.end() ? nullptr : &known->second);
      }
    }
  }
  return all;
}

std::optional<int> next_todo(const Standings& all, int after) {
  std::vector<int> order;
  for (auto it = all.upper_bound(after); it != all.end(); ++it) order.push_back(it->first);
  for (auto it = all.begin(); it != all.upper_bound(after); ++it) order.push_back(it->first);
  std::erase_if(order, [&](int todo) { return !same_series(todo, after); });
  const auto first = [&](auto wanted) -> std::optional<int> {
    const auto found = std::ranges::find_if(order, [&](int todo) { return wanted(all.at(todo)); });
    return found == order.end() ? std::nullopt : std::optional<int>(*found);
  };
  const auto calls = first([](const TodoStatus& standing) { return standing.needs_work(); });
  return calls ? calls : first([](const TodoStatus& standing) { return !standing.done(); });
}

std::vector<int> undone(std::vector<int> todos, const Standings& all) {
  std::erase_if(todos, [&](int todo) { return all.at(todo).done(); });
  return todos;
}

size_t count_done(const Standings& all, const std::vector<int>& todos) {
  return static_cast<size_t>(
      std::ranges::count_if(todos, [&](int todo) { return all.at(todo).done(); }));
}

}  // namespace checker
