#include "course/update.hpp"
#include "state/step_files.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kReset = "reset";  // before which the student's file is kept

// Keeps what stands there under a free name beside it, and returns that name.
fs::path keep(const Project& project, const fs::path& path) {
  auto beside = name_beside(path, kReset);
  std::error_code error;
  fs::copy_file(path, beside, error);
  if (error) {
    throw Error("Cannot save your file as " + project.shown(beside) + ": " + error.message() +
                ". Nothing was changed.");
  }
  return beside;
}

void reset_file(const Project& project, const StepFile& file) {
  const auto path = project.source / file.path;
  if (!fs::exists(path)) {
    write_file(path, file.given);
    terminal::say(file.path.string() + ": was missing, restored.");
    return;
  }
  if (read_file(path) == file.given) {
    terminal::say(file.path.string() + ": unchanged; nothing to do.");
    return;
  }
  const auto beside = keep(project, path);
  write_file(path, file.given);
  terminal::say(file.path.string() + ": restored; your version is saved as " +
                project.shown(beside) + ".");
}

// The file kept last and the present one change places. One without edits need not be kept.
bool bring_back(const Project& project, const StepFile& file) {
  const auto path = project.source / file.path;
  const auto kept = last_beside(path, kReset);
  if (!kept) return false;
  const auto mine = read_file(*kept);
  const bool edited = fs::exists(path) && read_file(path) != file.given;
  if (edited) {
    const auto present = read_file(path);
    write_file(path, mine);
    write_file(*kept, present);
  } else {
    write_file(path, mine);
    fs::remove(*kept);
  }
  terminal::say(
      file.path.string() + ": your version from before the reset is back" +
      (edited ? "; the file that was there is saved as " + project.shown(*kept) + "." : "."));
  return true;
}

}  // namespace

int run_reset(const Project& project, const Arguments& arguments) {
  cxxopts::Options options(
      "./workbook reset",
      "Restores the original files of a step and saves your version next to them.\n");
  options.add_options()("back", "Bring back the version that the last reset saved");
  options.add_options("hidden")("step", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"step"});
  const auto parsed = parse(options, "NN [--back]", "", arguments);
  if (!parsed) return 0;
  if (!parsed->count("step")) throw UsageError("Which step? For example: ./workbook reset 02.");

  const auto course = load_course(project.chapters());
  const auto& step = named_step(course, (*parsed)["step"].as<std::vector<std::string>>());
  bool found = false;
  for (const auto& file : step_files(course, step)) {
    if (!parsed->count("back")) {
      reset_file(project, file);
    } else if (bring_back(project, file)) {
      found = true;
    }
  }
  if (parsed->count("back") && !found) {
    throw Error("No reset of step " + step.name +
                " saved a file, so there is nothing to bring back.");
  }
  return 0;
}

}  // namespace checker
