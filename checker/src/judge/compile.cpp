#include "judge/compile.hpp"

#include <algorithm>
#include <regex>

#include "course/compile_words.hpp"
#include "judge/code_lines.hpp"
#include "judge/compiler_warnings.hpp"
#include "judge/given.hpp"
#include "judge/shown_file.hpp"
#include "process/build.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

// GCC names before the error what a template was needed for, "file:31:5:   required from here", and
// what was to be computed while compiling.
std::optional<std::string> required_from(const std::string& line,
                                         const std::filesystem::path& source,
                                         const std::string& shown) {
  static const std::regex form(
      R"(^(.+?):(\d+):(\d+):   (?:required from here$|in .{1,3}constexpr.{1,3} expansion of ).*)");
  std::smatch match;
  if (!std::regex_match(line, match, form)) return std::nullopt;
  const auto file = shown_beside(match[1].str(), source, shown);
  if (!file) return std::nullopt;
  return *file + ":" + match[2].str() + ":" + match[3].str();
}

struct Place {
  size_t line = 0, column = 0;
};

// Of "file:31:5"; zeros where there are no numbers.
Place place_in(const std::string& where) {
  static const std::regex form(R"(:(\d{1,7}):(\d{1,7})$)");
  std::smatch match;
  if (!std::regex_search(where, match, form)) return {};
  return {std::stoul(match[1]), std::stoul(match[2])};
}

// The number of the last line of code before this one.
size_t code_line_before(const std::string& text, const std::string& comment, size_t line) {
  size_t before = line;
  for (const int number : code_of(text, comment).numbers) {
    if (static_cast<size_t>(number) < line) before = static_cast<size_t>(number);
  }
  return before;
}

}  // namespace

std::optional<CompileError> first_error(const std::vector<std::string>& output,
                                        const std::filesystem::path& source,
                                        const std::string& shown) {
  CompileError error;
  std::string needed_from;
  for (size_t i = 0; i < output.size(); ++i) {
    if (error.message.empty()) {
      if (const auto from = required_from(output[i], source, shown)) needed_from = *from;
    }
    const auto message = compiler_message(output[i]);
    if (!message) continue;
    const bool is_error = message->kind.ends_with("error");
    if (error.message.empty() && !is_error) needed_from.clear();  // that was for a warning
    // The first is enough; what it comes with are notes. GCC ends some with a colon and goes on.
    const bool goes_on = is_error && error.message.ends_with(":");
    if (!error.message.empty() && message->kind != "note" && !goes_on) break;
    if (is_error) error.message += (goes_on ? " " : "") + message->text;
    if (error.message.empty()) continue;
    if (!is_error) error.notes.push_back(message->text);
    const auto file = shown_beside(message->file, source, shown);
    if (!error.where.empty() || !file) continue;
    error.where = *file + ":" + message->line + ":" + message->column;
    for (size_t shown_line = i + 1; shown_line <= i + 2 && shown_line < output.size();
         ++shown_line) {
      error.source += output[shown_line] + "\n";
    }
  }
  if (error.message.empty()) return std::nullopt;
  if (error.where.empty()) error.where = needed_from.empty() ? shown : needed_from;
  return error;
}

const CourseFile& file_at(const Course& course, const Step& step, const std::string& where) {
  const auto name = std::filesystem::path(where.substr(0, where.find(':'))).filename();
  for (const auto* file : course.files_of(step)) {
    if (file->name == name) return *file;
  }
  return course.program_of(step);
}

void explain(CompileError& error, const Course& course, const Step& step, const std::string& text) {
  const auto& source = file_at(course, step, error.where).source;
  const auto place = place_in(error.where);
  const auto lines = split_lines(text);
  const bool known = place.line >= 1 && place.line <= lines.size();
  const std::string line = known ? lines[place.line - 1] : "";
  const bool inside = place.column >= 1 && place.column <= line.size();
  const CompilerWords words{.message = error.message,
                            .line = line,
                            .at = inside ? line.substr(place.column - 1) : "",
                            .notes = error.notes};
  const auto meaning = CompileWords(course, step).meaning_of(words);
  if (meaning) {
    error.what = meaning->what;
    error.fix = meaning->fix;
  }
  if (known) {
    const bool first_token = line.find_first_not_of(" \t") + 1 == place.column;
    const auto guilty = meaning && meaning->line_before && first_token
                            ? code_line_before(text, source.comment(), place.line)
                            : place.line;
    error.todo = todo_at(course, source, step, text, static_cast<int>(guilty));
  }
  if (meaning && std::ranges::find(step.todos, meaning->todo) != step.todos.end()) {
    error.todo = meaning->todo;
  }
}

Compiled compile(const Project& project, const std::string& target,
                 const std::filesystem::path& source,
                 const std::function<void(std::string_view)>& on_progress) {
  const auto built = build_quietly(project, {&target, 1}, on_progress);
  if (built.interrupted_by) throw Error("Interrupted.");
  const auto shown = project.shown(source);
  if (!built.success) {
    if (auto error = first_error(built.output, source, shown)) return {std::move(error), {}};
    throw Error("Building " + target + " failed: " + join(compiler_messages(built.output), " / "));
  }
  const KeptWarnings kept(project.build / "warnings" / target);
  if (built.compiled(target)) kept.keep(warnings_in(built.output, source, shown));
  return {std::nullopt, kept.read()};
}

}  // namespace checker
