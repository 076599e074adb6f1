#include "judge/compile.hpp"

#include <regex>

#include "process/build.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

struct Message {
  std::string file, line, column, kind, text;
};

std::optional<Message> parse(const std::string& line) {
  static const std::regex form(R"(^(.+?):(\d+):(\d+): ((?:fatal )?error|note|warning): (.*)$)");
  std::smatch match;
  if (!std::regex_match(line, match, form)) return std::nullopt;
  return Message{match[1], match[2], match[3], match[4], match[5]};
}

bool is(const std::string& file, const std::filesystem::path& source) {
  return std::filesystem::path(file).lexically_normal() == source.lexically_normal();
}

// GCC names what a template was needed for before the error: "file:31:5:   required from here".
std::optional<std::string> required_from(const std::string& line,
                                         const std::filesystem::path& source) {
  static const std::regex form(R"(^(.+?):(\d+):(\d+):   required from here$)");
  std::smatch match;
  if (!std::regex_match(line, match, form) || !is(match[1], source)) return std::nullopt;
  return match[2].str() + ":" + match[3].str();
}

}  // namespace

std::optional<CompileError> first_error(const std::vector<std::string>& output,
                                        const std::filesystem::path& source,
                                        const std::string& shown) {
  CompileError error;
  std::string needed_from;
  for (size_t i = 0; i < output.size(); ++i) {
    if (error.message.empty()) {
      if (const auto from = required_from(output[i], source)) needed_from = *from;
    }
    const auto message = parse(output[i]);
    if (!message) continue;
    const bool is_error = message->kind.ends_with("error");
    if (!error.message.empty() && is_error) break;  // the first is enough
    if (is_error) error.message = message->text;
    if (error.message.empty() || !is(message->file, source)) continue;
    error.where = shown + ":" + message->line + ":" + message->column;
    for (size_t shown_line = i + 1; shown_line <= i + 2 && shown_line < output.size();
         ++shown_line) {
      error.source += output[shown_line] + "\n";
    }
    break;
  }
  if (error.message.empty()) return std::nullopt;
  if (error.where.empty()) error.where = shown + (needed_from.empty() ? "" : ":" + needed_from);
  return error;
}

std::optional<CompileError> compile(const Project& project, const std::string& target,
                                    const std::filesystem::path& source,
                                    const std::function<void(std::string_view)>& on_progress) {
  const auto built = build_quietly(project, {&target, 1}, on_progress);
  if (built.success) return std::nullopt;
  if (built.interrupted_by) throw Error("Interrupted.");
  if (auto error = first_error(built.output, source, project.shown(source))) return error;
  throw Error("Building " + target + " failed: " + join(compiler_messages(built.output), " / "));
}

}  // namespace checker
