#include "files.hpp"

#include "course/course.hpp"
#include "support/error.hpp"

namespace checker::testing {

namespace fs = std::filesystem;

fs::path chapters_folder() { return fs::path(PROJECT_FOLDER) / "checker" / "chapters"; }

const Course& course() {
  static const Course loaded = load_course(chapters_folder());
  return loaded;
}

const CourseFile& trainer_file() { return course().chapters.front().files.front(); }
const CourseFile& job_file() { return course().chapters.front().files.at(1); }

CourseCopy::CourseCopy() { fs::copy(chapters_folder(), path(), fs::copy_options::recursive); }

void CourseCopy::replace(const std::string& file, const std::string& text,
                         const std::string& by) const {
  auto content = read_file(chapter() / file);
  const auto at = content.find(text);
  if (at == content.npos) throw Error(file + " does not hold \"" + text + "\"");
  write_file(chapter() / file, content.replace(at, text.size(), by));
}

Outcome run_program(std::vector<std::string> arguments, std::vector<std::string> environment,
                    const fs::path& directory) {
  const Command command{std::move(arguments), std::move(environment), directory};
  Outcome outcome;
  RankOptions options;
  options.on_line = [&](size_t, bool, std::string_view line) {
    outcome.text.append(line).append("\n");
    return true;
  };
  outcome.status = run_ranks({&command, 1}, options).status();
  return outcome;
}

}  // namespace checker::testing
