#include "judge/workshop.hpp"

#include <algorithm>
#include <thread>

#include "process/build.hpp"
#include "process/ranks.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// In a piece's folder, beside its text.
constexpr const char *kProgram = "train", *kVersion = "version";

std::string replaced(std::string text, const std::string& part, const std::string& other) {
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + other.size())) {
    text.replace(at, part.size(), other);
  }
  return text;
}

std::string last_command(const Project& project, const std::string& target) {
  Command command;
  command.arguments = {project.ninja, "-C", project.build.string(), "-t", "commands", "-s", target};
  std::string last;
  RankOptions options;
  options.on_line = [&](size_t, bool is_error, std::string_view line) {
    if (!is_error && !line.starts_with("ninja: ")) last = line;
    return true;
  };
  if (!run_ranks({&command, 1}, options).success() || last.empty()) {
    throw Error("ninja does not know how " + target + " is built. Mend: ./workbook build");
  }
  return last;
}

}  // namespace

// Any trainer is built like any other, so the first step's solution serves for all.
Workshop::Recipe Workshop::recipe_of(const Project& project) {
  const auto ladder = load_ladder(project.ladder());
  const auto& step = ladder.steps.front();
  const std::string target = "solution_" + step.digits();
  Recipe recipe;
  recipe.source = (project.source / "solutions" / step.name / "train.cpp").string();
  recipe.object =
      "checker/CMakeFiles/" + target + ".dir/__/solutions/" + step.name + "/train.cpp.o";
  recipe.program = "bin/" + target;
  recipe.compile = last_command(project, recipe.object);
  recipe.link = last_command(project, recipe.program);
  return recipe;
}

// One shell line that compiles, links and names the program, in the build folder. All new paths are
// relative to it and made of plain letters, so that whatever quotes stand around the old ones fit.
std::string Workshop::script_of(const fs::path& folder, const std::string& version) const {
  const auto source = (folder / "train.cpp").string(), object = (folder / "train.o").string(),
             raw = (folder / "train.new").string();
  const auto compile =
      replaced(replaced(recipe_.compile, recipe_.source, source), recipe_.object, object);
  const auto link = replaced(replaced(recipe_.link, recipe_.object, object),
                             "-o " + recipe_.program + " ", "-o " + raw + " ");
  if (compile.find(source) == compile.npos || link.find(raw) == link.npos) {
    throw Error("The build's commands have an unknown form: " + recipe_.compile);
  }
  return compile + " && { " + link + " ; } && rm -f " + object + " " + object + ".d && mv " + raw +
         " " + (folder / kProgram).string() + " && echo " + version + " > " +
         (folder / kVersion).string();
}

// Changes with the program's text, the commands, and whatever libraries they link.
std::string Workshop::version_of(const std::string& text) const {
  const auto time = fs::last_write_time(project_.build / "bin" / "replay").time_since_epoch();
  return fingerprint(text + recipe_.compile + recipe_.link + std::to_string(time.count()));
}

Workshop::Workshop(const Project& project, bool builds) : project_(project), builds_(builds) {
  if (!builds) return;
  // The replay needs what trainers need as well: the precompiled header and the libraries.
  const std::string replay = "replay";
  if (const auto built = build_quietly(project, {&replay, 1}); !built.success) {
    throw Error("Building the replay failed: " + join(compiler_messages(built.output), " / "));
  }
  recipe_ = recipe_of(project);
}

void Workshop::build(std::span<WorkPiece> pieces) const {
  std::vector<std::vector<Command>> commands;
  std::vector<WorkPiece*> building;
  for (auto& piece : pieces) {
    const auto folder = fs::path("workshop") / piece.name;
    piece.program = project_.build / folder / kProgram;
    const bool there = fs::exists(piece.program);
    if (!builds_ && !there) throw Error(piece.name + " was not built. Mend: without --no-build.");
    if (!builds_) continue;
    const auto version = version_of(piece.text);
    const auto version_file = project_.build / folder / kVersion;
    if (there && fs::exists(version_file) && trim(read_file(version_file)) == version) continue;
    fs::remove_all(project_.build / folder);
    write_file(project_.build / folder / "train.cpp", piece.text);
    const auto script = script_of(folder, version);
    commands.push_back({Command{
        .arguments = {"sh", "-c", script}, .environment = {}, .directory = project_.build}});
    building.push_back(&piece);
  }
  const size_t width = std::max(1U, std::thread::hardware_concurrency());
  for (size_t from = 0; from < commands.size(); from += width) {
    const size_t count = std::min(width, commands.size() - from);
    RankOptions options;
    options.on_line = [&](size_t number, bool, std::string_view line) {
      building[from + number]->output.emplace_back(line);
      return true;
    };
    const auto results = run_groups(std::span(commands).subspan(from, count), options);
    for (size_t i = 0; i < count; ++i) {
      if (results[i].interrupted_by) throw Error("Interrupted.");
      if (!results[i].success()) building[from + i]->program.clear();
    }
  }
}

}  // namespace checker
