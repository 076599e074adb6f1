#include <algorithm>
#include <array>

#include "grade/render.hpp"
#include "support/text.hpp"

namespace checker::grade {

namespace {

char letter(Mark mark) {
  constexpr std::array<char, 6> letters{'+', 'x', 'o', '.', '-', '?'};
  return letters.at(static_cast<size_t>(mark));
}

// Bytes are not columns; names are mostly ASCII, and others only stand a little to the left.
std::string padded(std::string text, size_t width) {
  const auto columns =
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0U) != 0x80; });
  text.append(width - std::min(width, static_cast<size_t>(columns)), ' ');
  return text;
}

std::string right_aligned(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string note_on(const Student& student) {
  if (student.absent) return "nothing handed in";
  if (!student.problem.empty()) return student.problem;
  return student.late ? "late" : "";
}

}  // namespace

std::vector<std::string> to_lines(const ClassReport& report, size_t width) {
  const size_t marks = 2 * report.titles.size();
  const size_t name = std::clamp<size_t>(width < marks + 20 ? 12 : width - marks - 20, 12, 28);
  std::string tens = padded("", name + 10), ones = tens;
  for (const auto& [todo, ignored] : report.titles) {
    tens += (todo >= 10 ? std::to_string(todo / 10) : " ") + " ";
    ones += std::to_string(todo % 10) + " ";
  }
  std::vector<std::string> lines{"  " + tens, "  " + ones};
  for (const auto& student : report.students) {
    std::string line = "  " + padded(shown_name(student.name, name), name) + " " +
                       right_aligned(shown_points(student.points), 6) + "   ";
    for (const auto& [todo, mark] : student.marks) line += std::string(1, letter(mark)) + " ";
    lines.push_back(line + note_on(student));
  }
  lines.emplace_back("");
  lines.emplace_back("  + done  x wrong  o open  . waits for another  - missing  ? not graded");
  auto todos = report.by_todo();
  std::ranges::stable_sort(todos, std::ranges::greater(), [](const auto& one) {
    return one.counts.contains(Mark::wrong) ? one.counts.at(Mark::wrong) : 0;
  });
  for (const auto& one : todos) {
    if (one.findings.empty()) continue;
    if (lines.size() > report.students.size() + 8) break;
    const auto& [id, students] = one.findings.front();
    lines.push_back("  TODO " + padded(std::to_string(one.todo), 2) + " is wrong for " +
                    count_of(one.counts.at(Mark::wrong), "student") +
                    ", most often because: " + id + " (" + std::to_string(students) + ")");
  }
  return lines;
}

}  // namespace checker::grade
