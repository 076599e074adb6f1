#include "judge/given.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "course/render.hpp"
#include "judge/code_lines.hpp"
#include "support/common_lines.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

// The original lines of code, and where among them each TODO's places lie.
struct Given {
  std::vector<std::string> lines;
  /// For each TODO its places: the first line and the one behind the last. A place where code is
  /// only added is empty.
  std::map<int, std::vector<std::pair<size_t, size_t>>> places;
};

// solved: TODOs of the step whose code is in it already.
Given given_of(const Course& course, const Source& source, const Step& step,
               const std::set<int>& solved = {}) {
  Given given;
  std::vector<int> numbers;  // of the source's lines
  auto features = features_until(course, step, Rendering::step);
  for (const int todo : solved) {
    const auto& own = course.todos.at(todo).features;
    features.insert(own.begin(), own.end());
  }
  std::map<int, std::vector<size_t>> begins;
  for (const auto& line : source.select(features)) {
    if (line.todo != 0) begins[line.todo].push_back(given.lines.size());
    if (line.todo != 0 || line.header) continue;
    for (auto& code :
         code_of(substituted(line.text, step, Rendering::step), source.comment()).texts) {
      given.lines.push_back(std::move(code));
      numbers.push_back(line.number);
    }
  }
  for (const int todo : step.todos) {
    auto done = features;
    const auto& own = course.todos.at(todo).features;
    done.insert(own.begin(), own.end());
    std::set<int> stay;
    for (const auto& line : source.select(done)) stay.insert(line.number);
    for (const size_t begin : begins[todo]) {
      size_t end = begin;
      while (end < given.lines.size() && !stay.contains(numbers[end])) ++end;
      given.places[todo].emplace_back(begin, end);
    }
  }
  return given;
}

struct Changes {
  std::vector<bool> kept;  ///< of the given lines
  std::set<size_t> added;  ///< before which of them there are new ones, and none is gone
  /// Before which of them there may be new ones: the lines on both sides are gone, for others.
  std::set<size_t> rewritten = {};

  bool spare(const std::pair<size_t, size_t>& place) const {
    const auto [begin, end] = place;
    if (begin == end) return !added.contains(begin) && !rewritten.contains(begin);
    bool whole = kept[begin];
    for (size_t i = begin + 1; i < end; ++i) whole = whole && kept[i] && !added.contains(i);
    return whole;
  }
};

Changes changes_of(const Given& given, const std::vector<std::string>& lines) {
  const std::vector<std::string_view> a(given.lines.begin(), given.lines.end()),
      b(lines.begin(), lines.end());
  Changes changes{.kept = std::vector<bool>(a.size()), .added = {}};
  size_t next = 0, next_new = 0;
  auto pairs = common_lines(a, b);
  pairs.emplace_back(a.size(), b.size());
  for (const auto& [old, present] : pairs) {
    if (old < a.size()) changes.kept[old] = true;
    if (present > next_new && old == next) changes.added.insert(old);
    for (size_t at = next + 1; present > next_new && at < old; ++at) changes.rewritten.insert(at);
    next = old + 1;
    next_new = present + 1;
  }
  return changes;
}

// The lines of code once all TODOs of the step are done, and which of them each TODO's solution is.
Given solved_of(const Course& course, const Source& source, const Step& step) {
  Given solved;
  std::map<int, std::set<int>> kept;  // by TODO: the numbers of the lines that are there without it
  auto features = features_until(course, step, Rendering::solution);
  for (const int todo : step.todos) {
    auto without = features;
    for (const auto& feature : course.todos.at(todo).features) without.erase(feature);
    for (const auto& line : source.select(without)) kept[todo].insert(line.number);
  }
  for (const auto& line : source.select(features)) {
    if (line.todo != 0 || line.header) continue;
    const auto text = substituted(line.text, step, Rendering::solution);
    for (auto& code : code_of(text, source.comment()).texts) {
      const size_t at = solved.lines.size();
      for (const int todo : step.todos) {
        if (kept[todo].contains(line.number)) continue;
        auto& places = solved.places[todo];
        if (places.empty() || places.back().second != at) places.emplace_back(at, at);
        places.back().second = at + 1;
      }
      solved.lines.push_back(std::move(code));
    }
  }
  return solved;
}

// The TODOs in whose places line `at` lies, of these lines; or beside whose places, if it is a new
// one and lies in none.
std::set<int> todos_around(const Given& given, const std::vector<std::string>& lines, size_t at) {
  const std::vector<std::string_view> a(given.lines.begin(), given.lines.end()),
      b(lines.begin(), lines.end());
  size_t begin = 0, end = a.size();  // the lines of `given` that `at` stands for
  bool kept = false;
  for (const auto& [old, present] : common_lines(a, b)) {
    if (present < at) begin = old + 1;
    kept = kept || present == at;
    if (present == at) begin = old;
    if (present == at) end = old + 1;
    if (present > at) end = std::min(end, old);
  }
  std::set<int> in, beside;
  for (const auto& [todo, places] : given.places) {
    for (const auto& [first, behind] : places) {
      const bool empty = first == behind;
      if (std::max(first, begin) < std::min(behind, end)) in.insert(todo);
      if (kept || first > end || behind < begin) continue;
      (empty ? in : beside).insert(todo);
    }
  }
  return in.empty() ? beside : in;
}

}  // namespace

bool is_given_code(const Course& course, const Source& source, const Step& step,
                   const std::string& text) {
  return code_of(text, source.comment()).texts == given_of(course, source, step).lines;
}

std::set<int> untouched_todos(const Course& course, const Source& source, const Step& step,
                              const std::string& text) {
  const auto lines = code_of(text, source.comment()).texts;
  const auto given = given_of(course, source, step);
  const auto changes = changes_of(given, lines);
  std::set<int> untouched;
  for (const auto& [todo, places] : given.places) {
    if (!std::ranges::all_of(places, [&](const auto& place) { return changes.spare(place); })) {
      continue;
    }
    // Where a neighbour's code is replaced, code added beside it shows only against the neighbour's
    // solution.
    std::set<int> others(step.todos.begin(), step.todos.end());
    others.erase(todo);
    const auto solved = given_of(course, source, step, others);
    const auto additions = changes_of(solved, lines).added;
    if (std::ranges::none_of(solved.places.at(todo), [&](const auto& place) {
          return place.first == place.second && additions.contains(place.first);
        })) {
      untouched.insert(todo);
    }
  }
  return untouched;
}

std::set<int> doubtful_todos(const Course& course, const Source& source, const Step& step,
                             const std::string& text) {
  const auto given = given_of(course, source, step);
  const auto changes = changes_of(given, code_of(text, source.comment()).texts);
  std::set<int> doubtful;
  for (const auto& [todo, places] : given.places) {
    for (const auto& [begin, end] : places) {
      if (begin != end) continue;
      for (const auto& [other, others_places] : given.places) {
        const bool changed_beside =
            std::ranges::any_of(others_places, [&, at = begin](const auto& place) {
              return place.first <= at && at <= place.second && !changes.spare(place);
            });
        if (other != todo && changed_beside) doubtful.insert(todo);
      }
    }
  }
  return doubtful;
}

int todo_at(const Course& course, const Source& source, const Step& step, const std::string& text,
            int line) {
  const auto code = code_of(text, source.comment());
  const auto found = std::ranges::find(code.numbers, line);
  if (found == code.numbers.end()) return 0;
  const auto at = static_cast<size_t>(found - code.numbers.begin());
  auto todos = todos_around(given_of(course, source, step), code.texts, at);
  // Against the original step, work that is done beside the line hides whose the line is; against
  // the solution, work that is still to be done.
  if (todos.size() > 1) {
    const auto others = todos_around(solved_of(course, source, step), code.texts, at);
    std::set<int> both;
    std::ranges::set_intersection(todos, others, std::inserter(both, both.end()));
    if (!both.empty()) todos = both;
  }
  // Those that switch on the same are done in one go, and the last of them shows it.
  std::set<int> shown;
  for (const int todo : todos) {
    for (const auto& feature : course.todos.at(todo).features) {
      shown.insert(course.todo_of(feature));
    }
  }
  return shown.size() == 1 ? *shown.begin() : 0;
}

}  // namespace checker
