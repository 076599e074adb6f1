#include <array>
#include <cstdio>

#include "grade/render.hpp"

namespace checker::grade {

namespace {

// Quoted, and with an apostrophe before what a spreadsheet would take for a formula:
// https://owasp.org/www-community/attacks/CSV_Injection
std::string cell(const std::string& text) {
  constexpr std::string_view formula = "=+-@\t\r\n|%";
  std::string quoted = "\"";
  if (!text.empty() && formula.find(text.front()) != formula.npos) quoted += '\'';
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.10g", value);
  return text.data();
}

std::string state_of(const Student& student) {
  if (student.absent) return "missing";
  if (!student.problem.empty()) return student.possible > 0 ? "unreadable" : "not graded";
  return student.late ? "late" : "";
}

}  // namespace

std::string to_csv(const ClassReport& report) {
  std::string text = "student,points,possible,state,handed in";
  for (const auto& [todo, ignored] : report.titles) text += ",TODO " + std::to_string(todo);
  text += ",problem\r\n";
  for (const auto& student : report.students) {
    text += cell(shown_name(student.name, 200)) + ',' + number(student.points) + ',' +
            number(student.possible) + ',' + cell(state_of(student)) + ',' +
            cell(student.handed_in ? in_words(*student.handed_in) : "");
    for (const auto& [todo, mark] : student.marks) {
      const auto* finding = student.finding(todo);
      text += ',' + cell(name_of(mark) + (finding ? ": " + finding->id : ""));
    }
    text += ',' + cell(student.problem) + "\r\n";
  }
  return text;
}

}  // namespace checker::grade
