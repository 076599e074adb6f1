#include "course/update.hpp"
#include "state/step_files.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

namespace {

void reset_file(const Project& project, const StepFile& file) {
  const auto path = project.source / file.path;
  if (!std::filesystem::exists(path)) {
    write_file(path, file.given);
    terminal::say(file.path.string() + ": was not there, written as given.");
    return;
  }
  if (read_file(path) == file.given) {
    terminal::say(file.path.string() + ": as given; nothing to do.");
    return;
  }
  const auto beside = name_beside(path);
  std::error_code error;
  std::filesystem::copy_file(path, beside, error);
  if (error) {
    throw Error("Cannot keep your file as " + project.shown(beside) + ": " + error.message() +
                ". Nothing was changed.");
  }
  write_file(path, file.given);
  terminal::say(file.path.string() + ": as given again; yours is kept as " + project.shown(beside) +
                ".");
}

}  // namespace

int run_reset(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook reset",
                           "Writes a step as it was given, and keeps your file beside it.\n");
  options.add_options("hidden")("step", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"step"});
  const auto parsed = parse(options, "NN", "", arguments);
  if (!parsed) return 0;
  if (!parsed->count("step")) throw UsageError("Which step? For example: ./workbook reset 02.");

  const auto course = load_course(project.chapters());
  const auto& step = named_step(course, (*parsed)["step"].as<std::vector<std::string>>());
  for (const auto& file : step_files(course, step)) reset_file(project, file);
  return 0;
}

}  // namespace checker
