#include "grade/scheme.hpp"

#include <charconv>
#include <ctime>

#include "course/mapping.hpp"

namespace checker::grade {

namespace {

Time time_of(const std::filesystem::path& file, const YAML::Node& node) {
  std::tm parts{};
  const auto text = node.IsScalar() ? node.Scalar() : "";
  for (const char* form : {"%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d"}) {
    parts = {};
    const char* end = ::strptime(text.c_str(), form, &parts);
    if (!end || *end != '\0') continue;
    parts.tm_isdst = -1;
    return Time(std::chrono::seconds(std::mktime(&parts)));
  }
  fail(file, node.Mark(), "expected a time such as 2026-12-01 18:00.");
}

double number_of(const std::filesystem::path& file, const YAML::Node& node, double most) {
  double value = -1;
  const auto text = node.IsScalar() ? node.Scalar() : "";
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || !(value >= 0) ||
      !(value <= most)) {
    fail(file, node.Mark(),
         most == 1 ? "expected a number from 0 to 1." : "expected a number of points.");
  }
  return value;
}

void read_points(const std::filesystem::path& file, const YAML::Node& node, Scheme& scheme) {
  std::vector<std::string> known{"default"};
  for (const auto& [todo, ignored] : scheme.points) {
    known.push_back("TODO " + std::to_string(todo));
  }
  const Mapping points(file, node, known);
  for (auto& [todo, value] : scheme.points) {
    const auto name = "TODO " + std::to_string(todo);
    for (const auto& key : {name, std::string("default")}) {
      if (!points.has(key)) continue;
      value = number_of(file, points.node(key), 1e6);
      break;
    }
  }
}

}  // namespace

Scheme plain_scheme(const std::set<int>& todos) {
  Scheme scheme;
  for (const int todo : todos) scheme.points[todo] = 1;
  return scheme;
}

Scheme read_scheme(const std::filesystem::path& file, const std::set<int>& todos) {
  auto scheme = plain_scheme(todos);
  const Mapping root(file, read_yaml(file), {"points", "due", "late", "handed_in", "students"});
  if (root.has("points")) read_points(file, root.node("points"), scheme);
  if (root.has("due")) scheme.due = time_of(file, root.node("due"));
  if (root.has("late")) scheme.late_factor = number_of(file, root.node("late"), 1);
  if (root.has("handed_in")) {
    const auto times = root.node("handed_in");
    if (!times.IsMap()) fail(file, times.Mark(), "handed_in must be a mapping (student: time).");
    for (const auto& entry : times) {
      scheme.handed_in[entry.first.Scalar()] = time_of(file, entry.second);
    }
  }
  if (root.has("students")) {
    for (const auto& name : root.list<std::string>("students")) scheme.students.insert(name);
  }
  return scheme;
}

std::string in_words(Time time) {
  const auto seconds = static_cast<std::time_t>(time.time_since_epoch().count());
  std::tm parts{};
  ::localtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M", &parts);
  return text.data();
}

}  // namespace checker::grade
