#include "grade/class_report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace checker::grade {

namespace {

Mark mark_of(const Verdict& verdict) {
  switch (verdict.state) {
    case State::done:
      return Mark::done;
    case State::wrong:
      return Mark::wrong;
    case State::open:
      return Mark::open;
    case State::not_judged:
      break;
  }
  return verdict.untried ? Mark::not_graded : Mark::waits;
}

// How many bytes a well-formed character begins here with; 0: it is none, or one that a terminal or
// a page would not show as text.
size_t character_at(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0U; };
  const unsigned first = byte(at);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4) return 0;
  unsigned point = first & (0xffU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0U) != 0x80) return 0;
    point = point << 6U | (byte(at + i) & 0x3fU);
  }
  constexpr std::array<unsigned, 5> smallest{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point <= 0xdfff;
  const bool control = point < 0xa0;
  const bool invisible = (point >= 0x200b && point <= 0x200f) ||
                         (point >= 0x2028 && point <= 0x202e) ||
                         (point >= 0x2060 && point <= 0x206f) || point == 0xfeff;
  if (point < smallest.at(length) || point > 0x10ffff) return 0;
  return surrogate || control || invisible ? 0 : length;
}

}  // namespace

const Finding* Student::finding(int todo) const {
  const auto mark = marks.find(todo);
  if (mark == marks.end() || mark->second != Mark::wrong) return nullptr;
  for (const auto& report : reports) {
    for (const auto& verdict : report.verdicts) {
      if (verdict.todo == todo && !verdict.findings.empty()) return &verdict.findings.front();
    }
  }
  return nullptr;
}

void mark(Student& student, const Course& course, const Scheme& scheme, bool judged) {
  for (const auto& [todo, ignored] : course.todos) {
    if (is_exercise(todo)) continue;
    student.marks[todo] = judged ? Mark::missing : Mark::not_graded;
  }
  for (const auto& report : student.reports) {
    const auto& own = course.step(report.step).todos;
    for (const auto& verdict : report.verdicts) {
      // What an earlier step's TODO looks like in here counts there, where it was handed in.
      if (std::ranges::find(own, verdict.todo) == own.end()) continue;
      student.marks[verdict.todo] = mark_of(verdict);
    }
  }
  student.points = student.possible = 0;
  for (const auto& [todo, mark] : student.marks) {
    const double worth = scheme.points.at(todo);
    if (mark != Mark::not_graded) student.possible += worth;
    if (mark == Mark::done) student.points += worth;
  }
  if (student.late) student.points *= scheme.late_factor;
}

std::vector<TodoSummary> ClassReport::by_todo() const {
  std::vector<TodoSummary> all;
  for (const auto& [todo, ignored] : titles) {
    TodoSummary summary{.todo = todo, .counts = {}, .findings = {}};
    std::map<std::string, size_t> kinds;
    for (const auto& student : students) {
      ++summary.counts[student.marks.at(todo)];
      if (const auto* finding = student.finding(todo)) ++kinds[finding->id];
    }
    summary.findings.assign(kinds.begin(), kinds.end());
    std::ranges::stable_sort(summary.findings, std::ranges::greater(),
                             [](const auto& kind) { return kind.second; });
    all.push_back(std::move(summary));
  }
  return all;
}

std::string name_of(Mark mark) {
  constexpr std::array<const char*, 6> names{"done",  "wrong",   "open",
                                             "waits", "missing", "not graded"};
  return names.at(static_cast<size_t>(mark));
}

std::string shown_points(double points) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", points);
  return text.data();
}

std::string shown_name(const std::string& name, size_t longest) {
  std::vector<std::string> characters;
  for (size_t at = 0; at < name.size();) {
    if (const auto length = character_at(name, at)) {
      characters.push_back(name.substr(at, length));
      at += length;
    } else {
      std::array<char, 8> code{};
      std::snprintf(code.data(), code.size(), "\\x%02X", static_cast<uint8_t>(name[at++]));
      characters.emplace_back(code.data());
    }
  }
  std::string shown;
  const bool cut = characters.size() > longest;
  const size_t head = cut ? longest / 2 : characters.size(), tail = cut ? longest - head - 1 : 0;
  for (size_t i = 0; i < head; ++i) shown += characters[i];
  if (cut) shown += "…";
  for (size_t i = characters.size() - tail; i < characters.size(); ++i) shown += characters[i];
  return shown;
}

}  // namespace checker::grade
