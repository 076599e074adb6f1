#include "judge/compiler_warnings.hpp"

#include <algorithm>
#include <regex>

#include "judge/shown_file.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace {

namespace fs = std::filesystem;

constexpr const char* kUnusedParameter = "[-Wunused-parameter]";

}  // namespace

std::optional<CompilerMessage> compiler_message(const std::string& line) {
  static const std::regex form(R"(^(.+?):(\d+):(\d+): ((?:fatal )?error|note|warning): (.*)$)");
  std::smatch match;
  if (!std::regex_match(line, match, form)) return std::nullopt;
  return CompilerMessage{match[1], match[2], match[3], match[4], match[5]};
}

std::vector<CompilerWarning> warnings_in(const std::vector<std::string>& output,
                                         const fs::path& source, const std::string& shown) {
  std::vector<CompilerWarning> warnings;
  for (const auto& line : output) {
    const auto message = compiler_message(line);
    if (!message || message->kind != "warning" || line.ends_with(kUnusedParameter)) continue;
    const auto file = shown_beside(message->file, source, shown);
    if (!file) continue;
    CompilerWarning warning{.where = *file + ":" + message->line + ":" + message->column,
                            .message = message->text};
    if (std::ranges::find(warnings, warning) == warnings.end()) {
      warnings.push_back(std::move(warning));
    }
  }
  return warnings;
}

// A line each: the place, a tab, the message.
void KeptWarnings::keep(const std::vector<CompilerWarning>& warnings) const {
  std::string text;
  for (const auto& warning : warnings) text += warning.where + "\t" + warning.message + "\n";
  fs::create_directories(file_.parent_path());
  write_file(file_, text);
}

std::vector<CompilerWarning> KeptWarnings::read() const {
  std::error_code none;
  if (!fs::exists(file_, none)) return {};
  std::vector<CompilerWarning> warnings;
  for (const auto& line : split_lines(read_file(file_))) {
    const auto tab = line.find('\t');
    if (tab == line.npos) continue;
    warnings.push_back({.where = line.substr(0, tab), .message = line.substr(tab + 1)});
  }
  return warnings;
}

}  // namespace checker
