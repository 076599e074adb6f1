#include "course/course.hpp"
#include "course/version.hpp"
#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace fs = std::filesystem;

int run_pack(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook pack", "Packs your work to hand it in.\n");
  options.add_options()("output", "The archive",
                        cxxopts::value<std::string>()->default_value("hand-in.tar.gz"), "FILE");
  const auto parsed = parse(options, "[--output FILE]", "", arguments);
  if (!parsed) return 0;
  const fs::path archive = fs::absolute((*parsed)["output"].as<std::string>());
  const auto course = load_course(project.chapters());
  const TemporaryFolder folder;
  size_t files = 0;
  const auto take = [&](const fs::path& file) {
    if (!fs::exists(project.source / file)) return;
    write_file(folder.path() / file, read_file(project.source / file));
    ++files;
  };
  for (const auto& step : course.steps) {
    if (step.todos.empty() || step.is_beside()) continue;
    for (const auto* file : course.student_files(step)) take(course.path_of(step, *file, false));
  }
  write_file(folder.path() / kVersionFile, course_version(project) + "\n");
  const auto packed =
      capture({.arguments = {"tar", "-czf", archive.string(), "-C", folder.path().string(), "."},
               .environment = {},
               .directory = {}});
  if (!packed.success()) throw Error("Cannot write " + archive.string() + ": " + packed.output);
  terminal::say(project.shown(archive) + " holds " + std::to_string(files) +
                " files and the version of the course. Hand it in.");
  return 0;
}

}  // namespace checker
