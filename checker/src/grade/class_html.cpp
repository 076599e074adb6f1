#include <array>
#include <utility>

#include "grade/page_parts.hpp"
#include "grade/render.hpp"

namespace checker::grade {

namespace {

std::string css_class(Mark mark) { return mark == Mark::not_graded ? "ungraded" : name_of(mark); }

std::string symbol(Mark mark) {
  constexpr std::array<const char*, 6> symbols{"✓", "✗", "○", "·", "–", "?"};
  return symbols.at(static_cast<size_t>(mark));
}

std::string anchor(size_t number) { return "student-" + std::to_string(number); }

std::string grid(const ClassReport& report) {
  std::string html = "<table class=grid><thead><tr><th class=name>Student<th>Points";
  std::string step;
  for (const auto& [todo, title] : report.titles) {
    const bool first = std::exchange(step, report.steps.at(todo)) != report.steps.at(todo);
    html += "<th" + std::string(first ? " class=first" : "") + " title=\"" +
            page::escaped(report.steps.at(todo) + ": " + title) + "\">" + std::to_string(todo);
  }
  html += "</thead><tbody>\n";
  for (size_t i = 0; i < report.students.size(); ++i) {
    const auto& student = report.students[i];
    html += "<tr><th class=name><a href=\"#" + anchor(i) + "\">" +
            page::escaped(shown_name(student.name, 48)) + "</a>" +
            (student.late ? " <small>late</small>" : "") + "<td class=points>" +
            shown_points(student.points);
    step.clear();
    for (const auto& [todo, mark] : student.marks) {
      const bool first = std::exchange(step, report.steps.at(todo)) != report.steps.at(todo);
      const auto* finding = student.finding(todo);
      html += "<td class=\"" + css_class(mark) + (first ? " first" : "") + "\" title=\"" +
              page::escaped("TODO " + std::to_string(todo) + ": " + name_of(mark) +
                            (finding ? ", " + finding->what : "")) +
              "\">" + symbol(mark);
    }
    html += "\n";
  }
  return html + "</tbody></table>\n";
}

std::string legend() {
  std::string html = "<p class=legend>";
  for (const auto mark :
       {Mark::done, Mark::wrong, Mark::open, Mark::waits, Mark::missing, Mark::not_graded}) {
    html += "<span class=\"" + css_class(mark) + "\">" + symbol(mark) + "</span> " + name_of(mark) +
            (mark == Mark::waits ? " for another TODO" : "") + " ";
  }
  return html + "</p>\n";
}

std::string hardest(const ClassReport& report) {
  std::string html =
      "<table class=todos><thead><tr><th>TODO<th>done<th>wrong<th>most often because"
      "</thead><tbody>\n";
  for (const auto& summary : report.by_todo()) {
    const auto count = [&](Mark mark) {
      const auto found = summary.counts.find(mark);
      return found == summary.counts.end() ? 0 : found->second;
    };
    const size_t graded = report.students.size() - count(Mark::not_graded);
    html += "<tr><th>" + std::to_string(summary.todo) + " " +
            page::escaped(report.titles.at(summary.todo)) + "<td>" +
            page::bar(count(Mark::done), graded) + "<td>" + std::to_string(count(Mark::wrong)) +
            "<td>";
    for (size_t i = 0; i < std::min<size_t>(3, summary.findings.size()); ++i) {
      const auto& [id, students] = summary.findings[i];
      html +=
          (i ? ", " : "") + page::escaped(page::words(id)) + " (" + std::to_string(students) + ")";
    }
    html += "\n";
  }
  return html + "</tbody></table>\n";
}

std::string one_report(const Report& report, const ClassReport& all) {
  std::string html = "<h3>" + page::escaped(report.step) + "</h3>\n";
  if (report.compile_error) {
    html += "<p class=finding><b>It does not compile.</b> " +
            page::escaped(report.compile_error->where + ": " + report.compile_error->message) +
            "</p><pre>" + page::escaped(report.compile_error->source) + "</pre>\n";
  }
  for (const auto& verdict : report.verdicts) {
    const auto title = all.titles.find(verdict.todo);
    for (const auto& finding : verdict.findings) {
      html += "<div class=finding><b>TODO " + std::to_string(verdict.todo) + " " +
              page::escaped(title == all.titles.end() ? "" : title->second) + "</b><p>" +
              page::escaped(finding.what) + "</p><p>" + page::escaped(finding.why) + "</p>";
      if (!finding.evidence.empty()) html += page::list(finding.evidence);
      if (!finding.where.empty())
        html += "<p><code>" + page::escaped(finding.where) + "</code></p>";
      html += "</div>\n";
    }
  }
  if (report.timeline) html += page::picture(*report.timeline);
  return html;
}

std::string one_student(const ClassReport& report, const Student& student, size_t number) {
  std::string html = "<details class=student id=\"" + anchor(number) + "\"><summary>" +
                     page::escaped(shown_name(student.name)) + " <small>" +
                     shown_points(student.points) + " of " + shown_points(student.possible) +
                     " points" + (student.absent ? ", nothing handed in" : "") +
                     (student.late ? ", late" : "") + "</small></summary>\n";
  if (student.handed_in) html += "<p>Handed in " + in_words(*student.handed_in) + ".</p>\n";
  if (!student.problem.empty())
    html += "<p class=finding>" + page::escaped(student.problem) + "</p>";
  if (!student.remarks.empty()) html += page::list(student.remarks);
  bool any = false;
  for (const auto& one : student.reports) {
    const bool worth_showing = one.compile_error || one.first_finding();
    if (worth_showing) html += one_report(one, report);
    any = any || worth_showing;
  }
  if (!any && student.problem.empty() && !student.absent) html += "<p>Nothing was found wrong.</p>";
  return html + "</details>\n";
}

}  // namespace

std::string to_html(const ClassReport& report) {
  std::string html = page::head("Grading of " + in_words(report.when));
  html += "<h1>Class of " + std::to_string(report.students.size()) + "</h1><p>Graded " +
          in_words(report.when) + ", course " + page::escaped(report.course) +
          ". Similar submissions are not looked for.</p>\n";
  html += "<h2>TODO by TODO</h2>\n" + hardest(report);
  html += "<h2>The class</h2>\n" + legend() + grid(report) + "<h2>Student by student</h2>\n";
  for (size_t i = 0; i < report.students.size(); ++i) {
    html += one_student(report, report.students[i], i);
  }
  return html + page::foot();
}

}  // namespace checker::grade
