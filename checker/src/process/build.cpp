#include "process/build.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "process/ranks.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"

namespace checker {

std::vector<std::string> compiler_messages(std::span<const std::string> output) {
  std::vector<std::string> messages;
  bool command = false;  // the line after ninja's "FAILED:" is the whole command
  for (const auto& line : output) {
    const bool skip = std::exchange(command, line.starts_with("FAILED: "));
    const bool progress =
        line.starts_with("[") && line.find("] ") != line.npos && line.find('/') < line.find(']');
    if (skip || command || progress || line.starts_with("ninja: ")) continue;
    messages.push_back(line);
  }
  return messages;
}

BuildResult build_quietly(const Project& project, std::span<const std::string> targets,
                          const std::function<void(std::string_view)>& on_progress) {
  // In English, which compile_errors.yaml knows.
  Command command{.arguments = {project.cmake, "--build", project.build.string()},
                  .environment = {"NINJA_STATUS=[%f/%t] ", "LC_ALL=C.UTF-8"},
                  .directory = {}};
  if (!std::getenv("CMAKE_BUILD_PARALLEL_LEVEL")) {
    const auto cores = std::max(1U, std::thread::hardware_concurrency());
    command.arguments.insert(command.arguments.end(), {"--parallel", std::to_string(cores)});
  }
  command.arguments.emplace_back("--target");
  command.arguments.insert(command.arguments.end(), targets.begin(), targets.end());

  BuildResult built;
  RankOptions options;
  options.on_line = [&](size_t, bool, std::string_view line) {
    if (on_progress && line.starts_with("[")) on_progress(line.substr(0, line.find(']') + 1));
    built.output.emplace_back(line);
    return true;
  };
  const auto result = run_ranks({&command, 1}, options);
  built.success = result.success();
  built.interrupted_by = result.interrupted_by;
  built.idle = std::ranges::find(built.output, "ninja: no work to do.") != built.output.end();
  return built;
}

bool BuildResult::compiled(const std::string& target) const {
  return std::ranges::any_of(output, [&](const std::string& line) {
    return line.find("Building CXX object ") != line.npos &&
           line.find("/" + target + ".dir/") != line.npos;
  });
}

void build_targets(const Project& project, std::span<const std::string> targets,
                   const std::string& title) {
  terminal::Stage stage(title);
  const auto built =
      build_quietly(project, targets, [&](std::string_view progress) { stage.note(progress); });
  if (built.success) return built.idle ? stage.idle() : stage.done();
  stage.failed();
  if (built.interrupted_by) throw Error("The build was interrupted.");
  for (const auto& line : compiler_messages(built.output)) terminal::say(line);
  throw Error("Building " + join(targets, " ") + " failed; see the compiler's messages above.");
}

}  // namespace checker
