#include "course/render.hpp"

#include "course/update.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace {

int check(const RenderedFiles& files, const std::filesystem::path& folder) {
  const auto differences = find_differences(files, folder);
  for (const auto& line : differences) terminal::say(line);
  if (differences.empty()) {
    terminal::say(count_of(files.size(), "file") + ", all as rendered.");
    return 0;
  }
  terminal::complain(count_of(differences.size(), "file") +
                     " differ from the chapters. Fix: ./workbook render");
  return 1;
}

}  // namespace

int run_render(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook render",
                           "Writes steps/, solutions/ and sbatch/ from checker/chapters/.\n");
  options.add_options()("check", "Write nothing; list what differs, and fail if anything does")(
      "output", "Write into this folder (default: the project)", cxxopts::value<std::string>(),
      "DIR");
  const auto parsed =
      parse(options, "[--check] [--output DIR]",
            "An edited file is saved next to the new one, as <name>.before-update.", arguments);
  if (!parsed) return 0;

  const auto course = load_course(project.chapters());
  check_continuity(course);
  const auto files = render_all(course);
  const std::filesystem::path folder =
      parsed->count("output") ? (*parsed)["output"].as<std::string>() : project.source.string();
  if (parsed->count("check")) return check(files, folder);

  const auto update = update_files(files, folder);
  for (const auto& [file, beside] : update.kept) {
    terminal::say(file.string() + " had edits; saved as " + beside.string());
  }
  for (const auto& file : update.removed) terminal::say(file.string() + ": removed");
  for (const auto& file : update.written) terminal::say(file.string() + ": written");
  if (update.written.empty() && update.removed.empty()) {
    terminal::say(count_of(files.size(), "file") + ", all as rendered; nothing to do.");
  }
  return 0;
}

}  // namespace checker
