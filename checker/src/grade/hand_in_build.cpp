#include "grade/hand_in_build.hpp"

#include "judge/check.hpp"
#include "judge/compile.hpp"
#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::grade {

namespace fs = std::filesystem;

namespace {

// By the clock, where the processor is shared with others.
constexpr std::chrono::seconds kBuildingPatience{kBuilding.processor_seconds + 30};

// A program that is kept, with the very text that it was made from beside it.
class Kept {
 public:
  Kept(const BuildRequest& request, const Recipe& recipe)
      : text_(text_of(request.files)),
        program_(request.programs / recipe.version_of(text_)),
        source_(program_.string() + ".cpp"),
        wanted_(!request.programs.empty()) {}

  bool take_to(const fs::path& place) const {
    if (!wanted_ || !fs::exists(program_) || read_file(source_) != text_) return false;
    fs::copy_file(program_, place);
    return true;
  }

  void keep(const fs::path& program) const {
    if (!wanted_) return;
    write_file(source_, text_);
    const fs::path fresh = program_.string() + "." + std::to_string(::getpid());
    fs::copy_file(program, fresh, fs::copy_options::overwrite_existing);
    fs::rename(fresh, program_);
  }

 private:
  std::string text_;
  fs::path program_, source_;
  bool wanted_;
};

Command boxed(const Project& project, const Recipe& recipe, const BuildRequest& request,
              const Command& command, const Box& box) {
  const Mounts mounts{.read_only = recipe.inputs(project),
                      .writable = {request.folder},
                      .scratch = request.folder / "scratch"};
  box.hand_over(request.folder);
  box.hand_over(mounts.scratch);
  return box.wrap(command, mounts, request.limits);
}

CompileError unfinished(const BuildRequest& request, const Captured& ended) {
  const auto lines = split_lines(ended.output);
  const std::string why =
      ended.out_of_time ? "after " + std::to_string(kBuildingPatience.count()) +
                              " s the compiler was still running"
                        : "the compiler was stopped: it ran out of memory, time or disk space" +
                              (lines.empty() ? "" : ": " + lines.back());
  const auto where = request.shown + "/" + request.files.front().name;
  return {.where = where, .message = why, .source = ""};
}

}  // namespace

std::optional<CompileError> build_hand_in(const Project& project, const Recipe& recipe,
                                          const BuildRequest& request, const Box* box) {
  const auto& main = request.files.front().name;
  const auto source = request.folder / main, program = request.folder / kHandedInProgram;
  for (const auto& file : request.files) write_file(request.folder / file.name, file.text);
  const Kept kept(request, recipe);
  if (kept.take_to(program)) return std::nullopt;
  const auto object = (request.folder / "train.o").string();
  Command command{.arguments = {"sh", "-c", recipe.with(source, object, program)},
                  .environment = {"LC_ALL=C.UTF-8"},
                  .directory = project.build};
  if (box) command = boxed(project, recipe, request, command, *box);
  const auto ended = capture(command, kBuildingPatience);
  if (ended.interrupted_by) throw Error("Interrupted.");
  if (!ended.success()) {
    const auto error = first_error(split_lines(ended.output), source, request.shown + "/" + main);
    return error ? *error : unfinished(request, ended);
  }
  // Whatever the compiler was brought to do: a program is a file, and no way to another one.
  if (!fs::is_regular_file(fs::symlink_status(program))) return unfinished(request, ended);
  kept.keep(program);
  return std::nullopt;
}

}  // namespace checker::grade
