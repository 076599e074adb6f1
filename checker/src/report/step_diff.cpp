#include "report/step_diff.hpp"

#include "report/diff.hpp"
#include "state/step_files.hpp"
#include "support/files.hpp"

namespace checker {

std::vector<std::string> step_diff(const Project& project, const Course& course, const Step& step,
                                   const Look& look) {
  using terminal::Style;
  std::vector<std::string> lines;
  bool differs = false;
  for (const auto& file : step_files(course, step)) {
    const auto diff = code_diff(read_file(project.source / file.path), file.solved, file.comment);
    if (!lines.empty()) lines.emplace_back();
    if (diff.empty()) {
      lines.push_back(file.path.string() + ": the same as the solution, comments apart.");
      continue;
    }
    differs = true;
    lines.push_back(look.styled(Style::bold, "--- " + file.path.string()));
    lines.push_back(look.styled(Style::bold, "+++ " + file.solution.string()));
    append(lines, styled_diff(diff, look));
  }
  if (differs) {
    const auto remark = "This shows the solution: lines with - are yours, with + the reference's.";
    lines.insert(lines.begin(), {remark, ""});
  }
  return lines;
}

}  // namespace checker
