#include "judge/verdicts.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include "ladder/render.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

std::vector<std::string> code_lines(const std::string& text) {
  std::vector<std::string> lines;
  for (const auto& line : split_lines(text)) {
    const auto trimmed = trim(line);
    if (!trimmed.empty()) lines.emplace_back(trimmed);
  }
  return lines;
}

// "#SBATCH" is none.
bool is_comment(const std::string& line, const std::string& comment) {
  return line == comment || line.starts_with(comment + " ");
}

// The comment of a TODO and the line of code after it, for each of its places.
std::vector<std::vector<std::string>> places_of(int todo, const std::vector<std::string>& given,
                                                const std::string& comment) {
  const std::string start = comment + " TODO " + std::to_string(todo);
  std::vector<std::vector<std::string>> places;
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].starts_with(start + ":") && !given[i].starts_with(start + ",")) continue;
    std::vector<std::string> place;
    while (i < given.size() && is_comment(given[i], comment)) place.push_back(given[i++]);
    if (i < given.size()) place.push_back(given[i]);
    places.push_back(std::move(place));
  }
  return places;
}

bool contains(const std::vector<std::string>& text, const std::vector<std::string>& part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end()) != text.end();
}

}  // namespace

std::set<int> untouched_todos(const Ladder& ladder, const Source& source, const Step& step,
                              const std::string& text) {
  const auto given = code_lines(render(ladder, source, step, Rendering::step));
  const auto lines = code_lines(text);
  std::set<int> untouched;
  for (const int todo : step.todos) {
    const auto places = places_of(todo, given, source.comment());
    const auto unchanged = [&](const auto& place) { return contains(lines, place); };
    if (!places.empty() && std::ranges::all_of(places, unchanged)) untouched.insert(todo);
  }
  return untouched;
}

std::vector<Verdict> to_verdicts(const Ladder& ladder, const Source& source, const Step& step,
                                 const Findings& findings, const std::set<int>& untouched,
                                 bool cut_off) {
  std::map<int, std::vector<Finding>> by_todo;
  for (const auto& finding : findings) by_todo[finding.todo].push_back(finding);
  // A step judged for what it got ready-made is not judged for the rest: what depends on it is not
  // blamed.
  std::map<int, State> states;
  const auto in_trouble = [&](int todo) { return by_todo.contains(todo); };
  const std::function<int(int)> waits_for = [&](int todo) {
    for (const int needed : ladder.todos.at(todo).needs) {
      if (in_trouble(needed)) return needed;
      if (needed < todo) {
        if (const int deeper = waits_for(needed)) return deeper;
      }
    }
    return 0;
  };
  std::vector<Verdict> verdicts;
  for (const int todo : step.todos) {
    if (!source.todos().contains(todo)) continue;  // done in another file
    Verdict verdict{.todo = todo, .state = State::done, .findings = {}, .reason = ""};
    const int waiting = waits_for(todo);
    if (waiting != 0) {
      verdict.state = untouched.contains(todo) ? State::open : State::not_judged;
      verdict.reason = "waits for TODO " + std::to_string(waiting);
    } else if (in_trouble(todo)) {
      verdict.state = untouched.contains(todo) ? State::open : State::wrong;
      if (verdict.state == State::wrong) verdict.findings = by_todo.at(todo);
    } else if (cut_off) {
      verdict.state = untouched.contains(todo) ? State::open : State::not_judged;
      verdict.reason = "the run did not come that far";
    }
    verdicts.push_back(std::move(verdict));
  }
  for (const auto& [todo, found] : by_todo) {
    if (std::ranges::find(step.todos, todo) != step.todos.end() || waits_for(todo) != 0) continue;
    verdicts.push_back({.todo = todo, .state = State::wrong, .findings = found, .reason = ""});
  }
  return verdicts;
}

}  // namespace checker
