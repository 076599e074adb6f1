#include <nlohmann/json.hpp>

#include "grade/render.hpp"
#include "report/json.hpp"

namespace checker::grade {

using nlohmann::json;

namespace {

json from_student(const Student& student) {
  json todos = json::object();
  for (const auto& [todo, mark] : student.marks) {
    json entry{{"mark", name_of(mark)}};
    if (const auto* finding = student.finding(todo)) entry["finding"] = finding->id;
    todos[std::to_string(todo)] = entry;
  }
  json reports = json::array();
  for (const auto& report : student.reports) reports.push_back(json::parse(to_json(report)));
  json value{{"name", shown_name(student.name, 5000)},
             {"points", student.points},
             {"possible", student.possible},
             {"absent", student.absent},
             {"late", student.late},
             {"problem", student.problem},
             {"remarks", student.remarks},
             {"course", student.version},
             {"todos", todos},
             {"reports", reports}};
  if (student.handed_in) value["handed_in"] = in_words(*student.handed_in);
  return value;
}

json from_summary(const TodoSummary& summary, const ClassReport& report) {
  json counts = json::object(), findings = json::array();
  for (const auto& [mark, count] : summary.counts) counts[name_of(mark)] = count;
  for (const auto& [id, count] : summary.findings) {
    findings.push_back({{"finding", id}, {"students", count}});
  }
  return {{"todo", summary.todo},
          {"title", report.titles.at(summary.todo)},
          {"step", report.steps.at(summary.todo)},
          {"points", report.scheme.points.at(summary.todo)},
          {"counts", counts},
          {"findings", findings}};
}

}  // namespace

std::string to_json(const ClassReport& report) {
  json students = json::array(), todos = json::array();
  for (const auto& student : report.students) students.push_back(from_student(student));
  for (const auto& summary : report.by_todo()) todos.push_back(from_summary(summary, report));
  const json value{{"format", "worldsize class report 1"},
                   {"course", report.course},
                   {"graded", in_words(report.when)},
                   {"todos", todos},
                   {"students", students}};
  return value.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace checker::grade
