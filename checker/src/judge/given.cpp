#include "judge/given.hpp"

#include <algorithm>
#include <cctype>
#include <map>

#include "course/render.hpp"
#include "support/common_lines.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

// Leaves out comments of C++, which begin and end anywhere.
std::string without_comments(std::string_view text) {
  std::string code;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto rest = text.substr(i);
    if (quote != 0) {
      if (text[i] == '\\' && rest.size() > 1) code += text[i++];
      if (text[i] == quote || text[i] == '\n') quote = 0;
    } else if (rest.starts_with("//") || rest.starts_with("/*")) {
      const bool block = rest[1] == '*';
      const auto end = block ? text.find("*/", i + 2) : text.find('\n', i);
      if (end == text.npos) break;
      i = block ? end + 1 : end;
      code += block ? ' ' : '\n';
      continue;
    } else if (text[i] == '"' || text[i] == '\'') {
      // Between digits it is a separator: 1'000.
      const bool separator =
          text[i] == '\'' && i > 0 && std::isxdigit(static_cast<unsigned char>(text[i - 1])) != 0;
      quote = separator ? char{0} : text[i];
    }
    code += text[i];
  }
  return code;
}

// In a script comments have lines of their own; "#SBATCH" and "#!" are none.
bool is_script_comment(std::string_view line) { return line == "#" || line.starts_with("# "); }

std::vector<std::string> code_lines(std::string_view text, const std::string& comment) {
  const bool script = comment == "#";
  std::vector<std::string> lines;
  for (const auto& line : split_lines(script ? std::string(text) : without_comments(text))) {
    const auto code = trim(line);
    if (!code.empty() && !(script && is_script_comment(code))) lines.emplace_back(code);
  }
  return lines;
}

// The lines of code as given, and where among them each TODO's places lie.
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
    for (auto& code : code_lines(substituted(line.text, step, Rendering::step), source.comment())) {
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

  bool spare(const std::pair<size_t, size_t>& place) const {
    const auto [begin, end] = place;
    if (begin == end) return !added.contains(begin);
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
    next = old + 1;
    next_new = present + 1;
  }
  return changes;
}

}  // namespace

bool is_given_code(const Course& course, const Source& source, const Step& step,
                   const std::string& text) {
  return code_lines(text, source.comment()) == given_of(course, source, step).lines;
}

std::set<int> untouched_todos(const Course& course, const Source& source, const Step& step,
                              const std::string& text) {
  const auto lines = code_lines(text, source.comment());
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

}  // namespace checker
