#include "class_fixture.hpp"

namespace checker::testing {

std::set<int> todos() {
  std::set<int> all;
  for (const auto& [number, ignored] : course().todos) {
    if (!is_exercise(number)) all.insert(number);
  }
  return all;
}

grade::Student student(const std::string& name, std::vector<Report> reports) {
  grade::Student one;
  one.name = name;
  one.reports = std::move(reports);
  grade::mark(one, course(), grade::plain_scheme(todos()), true);
  return one;
}

Report half_done() {
  auto ten = wrong(10, "Every rank reports its own loss.");
  ten.findings.front().id = "loss_of_one_rank";
  return report(course(), "05_all_reduce_loss", {ten});
}

grade::ClassReport class_of(std::vector<grade::Student> students) {
  grade::ClassReport report;
  report.course = "0.1.0-test";
  report.scheme = grade::plain_scheme(todos());
  for (const auto& [number, todo] : course().todos) {
    if (is_exercise(number)) continue;
    report.titles[number] = todo.title;
    report.steps[number] = todo.step;
  }
  report.students = std::move(students);
  return report;
}

}  // namespace checker::testing
