#include <pugixml.hpp>
#include <sstream>

#include "grade/render.hpp"
#include "support/text.hpp"

namespace checker::grade {

namespace {

// XML 1.0 has no way to write most control characters, escaped or not.
std::string printable(const std::string& text) {
  std::string all;
  for (const auto& line : split_lines(text)) {
    all += (all.empty() ? "" : "\n") + shown_name(line, 2000);
  }
  return all;
}

void set(pugi::xml_node node, const char* name, const std::string& value) {
  node.append_attribute(name).set_value(printable(value).c_str());
}

std::string in_words(const Finding& finding) {
  std::string text = finding.what + "\n" + finding.why;
  for (const auto& line : finding.evidence) text += "\n" + line;
  return text + (finding.where.empty() ? "" : "\n" + finding.where);
}

void add_case(pugi::xml_node suite, const ClassReport& report, const Student& student, int todo,
              Mark mark) {
  auto test = suite.append_child("testcase");
  set(test, "name", "TODO " + std::to_string(todo) + " " + report.titles.at(todo));
  set(test, "classname", report.steps.at(todo));
  if (mark == Mark::done) return;
  const bool skipped = mark == Mark::not_graded;
  auto why = test.append_child(skipped ? "skipped" : "failure");
  const auto* finding = student.finding(todo);
  set(why, "message", finding ? finding->what : name_of(mark));
  if (!skipped) set(why, "type", finding ? finding->id : name_of(mark));
  if (finding) why.text().set(printable(in_words(*finding)).c_str());
}

}  // namespace

std::string to_junit(const ClassReport& report) {
  pugi::xml_document document;
  auto suites = document.append_child("testsuites");
  for (const auto& student : report.students) {
    auto suite = suites.append_child("testsuite");
    set(suite, "name", shown_name(student.name, 200));
    size_t failures = 0, skipped = 0;
    for (const auto& [todo, mark] : student.marks) {
      if (mark == Mark::not_graded) ++skipped;
      if (mark != Mark::done && mark != Mark::not_graded) ++failures;
    }
    suite.append_attribute("tests").set_value(static_cast<unsigned>(student.marks.size()));
    suite.append_attribute("failures").set_value(static_cast<unsigned>(failures));
    suite.append_attribute("skipped").set_value(static_cast<unsigned>(skipped));
    for (const auto& [todo, mark] : student.marks) add_case(suite, report, student, todo, mark);
    if (!student.problem.empty()) {
      suite.append_child("system-err").text().set(printable(student.problem).c_str());
    }
  }
  std::ostringstream text;
  document.save(text, "  ");
  return text.str();
}

}  // namespace checker::grade
