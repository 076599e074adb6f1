#include <array>
#include <utility>

#include "grade/page_parts.hpp"
#include "grade/render.hpp"
#include "support/markup.hpp"

namespace checker::grade {

namespace {

using markup::add, markup::add_row, markup::add_table, markup::add_text, markup::set;

std::string css_class(Mark mark) { return mark == Mark::not_graded ? "ungraded" : name_of(mark); }

std::string symbol(Mark mark) {
  constexpr std::array<const char*, 6> symbols{"✓", "✗", "○", "·", "–", "?"};
  return symbols.at(static_cast<size_t>(mark));
}

std::string anchor(size_t number) { return "student-" + std::to_string(number); }

// Whether this TODO is the first one of its step; `step` is that of the TODO before.
bool begins_step(const ClassReport& report, int todo, std::string& step) {
  const auto& its = report.steps.at(todo);
  return std::exchange(step, its) != its;
}

void add_student_row(pugi::xml_node body, const ClassReport& report, size_t number) {
  const auto& student = report.students[number];
  auto row = add(body, "tr");
  auto name = add(row, "th", {{"class", "name"}});
  add(name, "a", {{"href", "#" + anchor(number)}}, shown_name(student.name, 48));
  if (student.late) {
    add_text(name, " ");
    add(name, "small", "late");
  }
  add(row, "td", {{"class", "points"}}, shown_points(student.points));
  std::string step;
  for (const auto& [todo, mark] : student.marks) {
    const bool first = begins_step(report, todo, step);
    const auto* finding = student.finding(todo);
    const auto title = "TODO " + std::to_string(todo) + ": " + name_of(mark) +
                       (finding ? ", " + finding->what : "");
    add(row, "td",
        {{"class", css_class(mark) + (first ? " first" : "")}, {"title", page::printable(title)}},
        symbol(mark));
  }
}

void add_grid(pugi::xml_node parent, const ClassReport& report) {
  auto table = add(parent, "table", {{"class", "grid"}});
  auto head = add(add(table, "thead"), "tr");
  add(head, "th", {{"class", "name"}}, "Student");
  add(head, "th", "Points");
  std::string step;
  for (const auto& [todo, title] : report.titles) {
    const bool first = begins_step(report, todo, step);
    auto heading = add(head, "th");
    if (first) set(heading, {"class", "first"});
    set(heading, {"title", page::printable(report.steps.at(todo) + ": " + title)});
    add_text(heading, std::to_string(todo));
  }
  auto body = add(table, "tbody");
  for (size_t i = 0; i < report.students.size(); ++i) add_student_row(body, report, i);
}

void add_legend(pugi::xml_node parent) {
  auto legend = add(parent, "p", {{"class", "legend"}});
  for (const auto mark :
       {Mark::done, Mark::wrong, Mark::open, Mark::waits, Mark::missing, Mark::not_graded}) {
    add(legend, "span", {{"class", css_class(mark)}}, symbol(mark));
    add_text(legend, " " + name_of(mark) + (mark == Mark::waits ? " for another TODO" : "") + " ");
  }
}

std::string commonest(const TodoSummary& summary) {
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(3, summary.findings.size()); ++i) {
    const auto& [id, students] = summary.findings[i];
    text += (i ? ", " : "") + page::words(id) + " (" + std::to_string(students) + ")";
  }
  return page::printable(text);
}

void add_hardest(pugi::xml_node parent, const ClassReport& report) {
  auto body = add_table(parent, "todos", {"TODO", "done", "wrong", "most often because"});
  for (const auto& summary : report.by_todo()) {
    const auto count = [&](Mark mark) {
      const auto found = summary.counts.find(mark);
      return found == summary.counts.end() ? 0 : found->second;
    };
    const size_t graded = report.students.size() - count(Mark::not_graded);
    const auto& title = report.titles.at(summary.todo);
    auto row = add_row(body, std::to_string(summary.todo) + " " + page::printable(title));
    page::add_bar(add(row, "td"), count(Mark::done), graded);
    add(row, "td", std::to_string(count(Mark::wrong)));
    add(row, "td", commonest(summary));
  }
}

void add_finding(pugi::xml_node parent, const std::string& heading, const Finding& finding) {
  auto box = add(parent, "div", {{"class", "finding"}});
  add(box, "b", heading);
  add(box, "p", page::printable(finding.what));
  add(box, "p", page::printable(finding.why));
  if (!finding.evidence.empty()) page::add_list(box, finding.evidence);
  if (!finding.where.empty()) add(add(box, "p"), "code", page::printable(finding.where));
}

void add_report(pugi::xml_node parent, const Report& report, const ClassReport& all) {
  add(parent, "h3", page::printable(report.step));
  if (const auto& error = report.compile_error) {
    auto finding = add(parent, "p", {{"class", "finding"}});
    const auto todo = error->todo == 0 ? "" : " TODO " + std::to_string(error->todo) + ".";
    add(finding, "b", "It does not compile." + todo);
    if (!error->what.empty()) add_text(finding, " " + page::printable(error->what));
    add_text(finding, " " + page::printable(error->where + ": " + error->message));
    add(parent, "pre", page::printable(error->source));
  }
  for (const auto& verdict : report.verdicts) {
    const auto title = all.titles.find(verdict.todo);
    const auto heading = "TODO " + std::to_string(verdict.todo) + " " +
                         page::printable(title == all.titles.end() ? "" : title->second);
    for (const auto& finding : verdict.findings) add_finding(parent, heading, finding);
    for (const auto& note : verdict.notes) add_finding(parent, heading + " (a note)", note);
  }
  if (report.timeline) page::add_picture(parent, *report.timeline);
}

void add_student(pugi::xml_node parent, const ClassReport& report, size_t number) {
  const auto& student = report.students[number];
  auto details = add(parent, "details", {{"class", "student"}, {"id", anchor(number)}});
  auto summary = add(details, "summary", shown_name(student.name) + " ");
  add(summary, "small",
      shown_points(student.points) + " of " + shown_points(student.possible) + " points" +
          (student.absent ? ", nothing handed in" : "") + (student.late ? ", late" : ""));
  if (student.handed_in) add(details, "p", "Handed in " + in_words(*student.handed_in) + ".");
  if (!student.problem.empty()) {
    add(details, "p", {{"class", "finding"}}, page::printable(student.problem));
  }
  if (!student.remarks.empty()) page::add_list(details, student.remarks);
  bool any = false;
  for (const auto& one : student.reports) {
    const bool worth_showing = one.compile_error || one.first_finding();
    if (worth_showing) add_report(details, one, report);
    any = any || worth_showing;
  }
  if (!any && student.problem.empty() && !student.absent) {
    add(details, "p", "Nothing was found wrong.");
  }
}

}  // namespace

std::string to_html(const ClassReport& report) {
  pugi::xml_document body;
  add(body, "h1", "Class of " + std::to_string(report.students.size()));
  add(body, "p",
      "Graded " + in_words(report.when) + ", course " + page::printable(report.course) +
          ". This report does not look for similar submissions.");
  add(body, "h2", "TODO by TODO");
  add_hardest(body, report);
  add(body, "h2", "The class");
  add_legend(body);
  add_grid(body, report);
  add(body, "h2", "Student by student");
  for (size_t i = 0; i < report.students.size(); ++i) add_student(body, report, i);
  return page::whole("Grading of " + in_words(report.when), body);
}

}  // namespace checker::grade
