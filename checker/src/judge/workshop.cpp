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

}  // namespace

// One shell line that compiles, links and names the program, in the build folder.
std::string Workshop::script_of(const fs::path& folder, const std::string& version) const {
  const auto object = (folder / "train.o").string(), raw = (folder / "train.new").string();
  return recipe_.with((folder / "train.cpp").string(), object, raw) + " && rm -f " + object + " " +
         object + ".d && mv " + raw + " " + (folder / kProgram).string() + " && echo " + version +
         " > " + (folder / kVersion).string();
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
    const auto version = recipe_.version_of(piece.text);
    const auto version_file = project_.build / folder / kVersion;
    if (there && fs::exists(version_file) && trim(read_file(version_file)) == version) continue;
    fs::remove_all(project_.build / folder);
    write_file(project_.build / folder / "train.cpp", piece.text);
    const auto script = script_of(folder, version);
    commands.push_back({Command{
        .arguments = {"sh", "-c", script}, .environment = {}, .directory = project_.build}});
    building.push_back(&piece);
  }
  RankOptions options;
  options.width = std::max(1U, std::thread::hardware_concurrency());
  options.on_line = [&](size_t number, bool, std::string_view line) {
    building[number]->output.emplace_back(line);
    return true;
  };
  const auto results = run_groups(commands, options);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].interrupted_by) throw Error("Interrupted.");
    if (!results[i].success()) building[i]->program.clear();
  }
}

}  // namespace checker
