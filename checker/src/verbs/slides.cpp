#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "process/capture.hpp"
#include "process/ranks.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

namespace {

namespace fs = std::filesystem;

// The program that builds the slides, with the Python that ./workbook set up for it.
Command builder(const Project& project, const Arguments& arguments) {
  const auto python = project.source / ".venv" / "bin" / "python3";
  if (!fs::exists(python)) {
    throw Error("The tools that build the slides are missing. Fix: ./workbook slides --build-only");
  }
  Command command;
  command.arguments = {python.string(), (project.source / "slides" / "build.py").string(),
                       "--output", (project.build / "slides").string()};
  command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  return command;
}

int run_builder(const Project& project, const Arguments& arguments) {
  const auto command = builder(project, arguments);
  RankOptions options;
  options.wiring = {.pipe_output = false, .pipe_error = false};
  return run_ranks({&command, 1}, options).status();
}

// A path as an address has it: blanks and the like as %20.
std::string percent_encoded(const fs::path& path) {
  constexpr std::string_view digits = "0123456789ABCDEF", plain = "/-._~";
  std::string text;
  for (const char letter : path.string()) {
    const auto code = static_cast<unsigned char>(letter);
    if (std::isalnum(code) != 0 || plain.find(letter) != plain.npos) {
      text += letter;
    } else {
      text += {'%', digits[code / 16], digits[code % 16]};
    }
  }
  return text;
}

// The build leaves a line "8 decks/4_ddp.html#/todo-8" for each TODO.
std::string address_of(const fs::path& site, int todo) {
  const auto number = label_of_todo(todo);
  for (const auto& line : split_lines(read_file(site / "todos.txt"))) {
    if (!line.starts_with(number + " ")) continue;
    return "file://" + percent_encoded(site) + "/" + line.substr(number.size() + 1);
  }
  throw Error("No slide is about TODO " + number + ". Fix: ./workbook slides --build-only");
}

fs::file_time_type newest_in(const fs::path& folder) {
  auto newest = fs::file_time_type::min();
  std::error_code vanished;
  for (const auto& entry : fs::recursive_directory_iterator(folder, vanished)) {
    if (entry.is_regular_file(vanished)) newest = std::max(newest, entry.last_write_time());
  }
  return newest;
}

// Text, figures and captured output lie in slides/, the TODOs' words and code in the course.
bool is_of_today(const fs::path& site, const Project& project) {
  std::error_code missing;
  const auto built = fs::last_write_time(site / "todos.txt", missing);
  return !missing && newest_in(project.source / "slides") <= built &&
         newest_in(project.chapters()) <= built;
}

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value && *value != '\0';
}

int show_slide(const Project& project, int todo) {
  const auto site = project.build / "slides" / "site";
  if (!is_of_today(site, project)) {
    const int status = run_builder(project, {"--build-only"});
    if (status != 0) return status;
  }
  const auto address = address_of(site, todo);
  terminal::say(name_of_todo(todo) + "'s slide: " + address);
  // Where there is a desktop its browser opens the slide; elsewhere the address must do.
  if (is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")) {
    capture({{"sh", "-c", "xdg-open \"$1\" || true", "sh", address}, {}, {}});
  }
  return 0;
}

}  // namespace

int run_slides(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook slides",
                           "Builds the slides of the course and serves them on 127.0.0.1.\n");
  options.add_options()("build-only", "Build the slides, but do not serve them")(
      "handout", "Make one page to read of all slides")("pdf",
                                                        "Make a PDF of each deck (needs Chromium)")(
      "check", "Check every slide in Chromium; takes some minutes")(
      "pictures", "Make pictures of all slides, nine on a sheet")(
      "refresh", "Run the commands again that slides show: all, or those named")(
      "port", "Port to serve on (default: the first free one from 8000)", cxxopts::value<int>(),
      "N");
  options.add_options("hidden")("words", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"words"});
  const auto parsed = parse(options, "[N] [options]",
                            "With the number of a TODO, it opens the slide about it.", arguments);
  if (!parsed) return 0;
  if (!parsed->count("words") || parsed->count("refresh")) return run_builder(project, arguments);
  const auto course = load_course(project.chapters());
  const auto words = (*parsed)["words"].as<std::vector<std::string>>();
  const auto& todo = named_todo(course, words, present_standings(project, course));
  if (is_exercise(todo.number)) {
    const auto label = label_of_todo(todo.number);
    throw UsageError("The exercise " + label + " has no slide. Fix: ./workbook hint " + label +
                     ".");
  }
  return show_slide(project, todo.number);
}

}  // namespace checker
