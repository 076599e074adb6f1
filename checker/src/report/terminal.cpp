#include "report/terminal.hpp"

#include <algorithm>

#include "support/text.hpp"

namespace checker {

namespace {

using terminal::Style;

constexpr size_t detail = 6;  // columns before what stands under a TODO

std::vector<std::string> compile_error_lines(const CompileError& error, const Course& course,
                                             const Look& look) {
  std::vector<std::string> lines{mark(State::wrong, look) + " " +
                                 look.styled(Style::bold, error.where) + " does not compile:"};
  if (error.todo != 0) {
    const auto& todo = course.todos.at(error.todo);
    lines.push_back("  " + name_of_todo(error.todo) + "  " + todo.title);
  }
  lines.emplace_back();
  if (!error.what.empty()) {
    for (const auto& line : paragraphs(error.what, 2, look)) {
      lines.push_back(look.styled(Style::bold, line));
    }
    append(lines, paragraphs(error.fix, 2, look));
    lines.emplace_back();
    lines.emplace_back("  The compiler says:");
  }
  append(lines, hanging_line(error.message, 2, look));
  if (trim(error.source).empty()) return lines;
  lines.emplace_back();
  for (const auto& line : split_lines(error.source)) lines.push_back("  " + printable(line));
  return lines;
}

// Only beside a mistake: they may name its cause.
std::vector<std::string> warning_lines(const Report& report, const Look& look) {
  constexpr size_t most = 3;
  // Of what is left to do a compiler warns as well: of names that are not used yet.
  const bool found = report.first_finding() != nullptr;
  if ((!found && !report.passed()) || report.warnings.empty()) return {};
  std::vector<std::string> lines{"", found ? "  The compiler warns too:" : "  The compiler warns:"};
  const size_t count = std::min(most, report.warnings.size());
  for (size_t i = 0; i < count; ++i) {
    const auto& [where, message] = report.warnings[i];
    append(lines, hanging_line(where + "  " + message, 4, look));
  }
  const size_t more = report.warnings.size() - count;
  if (more > 0) lines.push_back("    and " + std::to_string(more) + " more");
  return lines;
}

void append_block(std::vector<std::string>& lines, const std::vector<std::string>& block) {
  if (block.empty()) return;
  if (!lines.empty()) lines.emplace_back();
  append(lines, block);
}

// Of a crash also what is known of it, for it may be the cause of what stands first.
std::vector<std::string> short_finding(const Finding& finding, const Look& look) {
  const std::string where = finding.where.empty() ? "" : " (" + finding.where + ")";
  auto lines = paragraphs(finding.what + where, detail, look);
  if (finding.kind != FindingKind::crash) return lines;
  for (const auto& line : finding.evidence) append(lines, hanging_line(line, detail, look));
  return lines;
}

std::string note_on(const Verdict& verdict, const Todo& todo, const Report& report) {
  std::string note;
  if (verdict.state == State::open) {
    note = verdict.reason.empty() ? "open" : "open: " + printable(verdict.reason);
  }
  if (verdict.state == State::not_judged) note = printable(verdict.reason);
  if (verdict.state == State::not_judged && note.empty()) note = "not judged";
  if (todo.step == report.step) return note;
  return "of step " + todo.step + (note.empty() ? "" : "; " + note);
}

// A TODO that a newer course brought and this course lacks cannot be: the judge goes by the course.
void append_verdict(std::vector<std::string>& lines, const Verdict& verdict, const Report& report,
                    const Course& course, const Look& look) {
  const auto& todo = course.todos.at(verdict.todo);
  append(lines, todo_lines(todo, verdict.state, note_on(verdict, todo, report), look));
  for (const auto& note : verdict.notes)
    append(lines, paragraphs("Note: " + note.what + " " + note.why, detail, look));
  const bool last = &verdict == &report.verdicts.back();
  for (const auto& finding : verdict.findings) {
    const bool first = &finding == report.first_finding();
    append(lines, first ? finding_lines(finding, detail, look) : short_finding(finding, look));
    if (first && (!last || &finding != &verdict.findings.back())) lines.emplace_back();
  }
}

std::vector<std::string> after_the_last(const Look& look) {
  const auto bold = [&](const char* text) { return look.styled(Style::bold, text); };
  return {
      "You have done all TODOs of the course. What you can do now:",
      "  " + bold("./workbook challenge") +
          "            write the whole trainer again, without TODOs",
      "  " + bold("./workbook quiz") + "                 predict what programs do",
      "  " + bold("./workbook watch collectives") + "    do the exercises C1 to C11",
      "  " + bold(kExperiments) + "                 read: experiments and what to look for",
      "  " + bold("./workbook bench scaling") +
          "        measure how the batch size changes the loss",
      "  " + bold("./workbook slides") + "               read deck 7: what comes after this course",
      "  " + bold("./workbook pack") + "                 hand your work in"};
}

}  // namespace

std::vector<std::string> finding_lines(const Finding& finding, size_t indent, const Look& look) {
  std::vector<std::string> lines = paragraphs(finding.what, indent, look);
  for (auto& line : lines) line = look.styled(Style::bold, line);
  append_block(lines, paragraphs(finding.why, indent, look));
  std::vector<std::string> evidence;
  for (const auto& line : finding.evidence) append(evidence, hanging_line(line, indent, look));
  append_block(lines, evidence);
  if (!finding.where.empty()) append_block(lines, hanging_line(finding.where, indent, look));
  return lines;
}

std::vector<std::string> todo_lines(const Todo& todo, State state, const std::string& note,
                                    const Look& look) {
  auto digits = label_of_todo(todo.number);
  digits.resize(std::max<size_t>(4, digits.size() + 2), ' ');
  const std::string label = "  " + mark(state, look) + " TODO " + digits;
  const auto line = label + todo.title;
  if (note.empty()) return {line};
  const auto remark = look.styled(Style::dim, "(" + note + ")");
  if (columns(line) + 2 + columns(remark) <= look.width) return {line + "  " + remark};
  std::vector<std::string> lines{line};
  for (const auto& part : hanging_line("(" + note + ")", columns(label), look)) {
    lines.push_back(look.styled(Style::dim, part));
  }
  return lines;
}

std::vector<std::string> report_lines(const Report& report, const Course& course,
                                      const Look& look) {
  if (report.compile_error) return compile_error_lines(*report.compile_error, course, look);
  const auto& step = course.step(report.step);
  const auto name = look.styled(Style::bold, step.name);
  std::vector<std::string> lines{name + "  " + (report.solution ? "the solution: " : "") +
                                 step.title};
  lines.emplace_back();
  for (const auto& verdict : report.verdicts) {
    append_verdict(lines, verdict, report, course, look);
  }
  if (report.first_finding() && !report.conditions.empty()) {
    lines.emplace_back();
    append(lines, hanging_line("This run: " + report.conditions, 2, look));
  }
  append(lines, warning_lines(report, look));
  if (report.not_checked.empty()) return lines;
  lines.emplace_back();
  lines.emplace_back("  Not checked:");
  for (const auto& line : report.not_checked) append(lines, hanging_line(line, 4, look));
  return lines;
}

std::vector<std::string> next_lines(const Course& course, std::optional<int> todo, const Look& look,
                                    const Step* program) {
  if (!todo) return after_the_last(look);
  const auto& next = course.todos.at(*todo);
  const auto number = label_of_todo(*todo);
  // What an earlier step left to do stands ready-made, without its text, in a later one.
  const bool elsewhere = program && program->name != next.step;
  const auto file = elsewhere ? course.path_of(*program, course.source_of(next), false).string()
                              : course.file_of(next).string();
  std::vector<std::string> lines =
      hanging_line("Next is TODO " + number + ", " + next.title + ":", 0, look);
  lines.push_back("  edit   " + look.styled(Style::bold, file) +
                  (elsewhere ? "" : ", where it says TODO " + number));
  lines.push_back("  hint   " + look.styled(Style::bold, "./workbook hint " + number));
  return lines;
}

std::optional<int> todo_to_fix(const Report& report) {
  if (const auto* finding = report.first_finding()) return finding->todo;
  for (const auto& verdict : report.verdicts) {
    if (verdict.state == State::wrong || verdict.state == State::open) return verdict.todo;
  }
  return std::nullopt;
}

}  // namespace checker
