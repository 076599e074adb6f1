#include "golden/other_commit.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"

namespace checker::golden {

namespace fs = std::filesystem;

namespace {

// What decides how programs are compiled, and where CMake looks for libraries.
constexpr std::array<const char*, 8> kTaken{
    "CMAKE_BUILD_TYPE",  "CMAKE_CXX_COMPILER", "CMAKE_CXX_FLAGS",   "CMAKE_MAKE_PROGRAM",
    "CMAKE_PREFIX_PATH", "LIBTORCH_ROOT",      "WORLDSIZE_SOURCES", "WORLDSIZE_CUDA"};

Captured git(const Project& project, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"git", "-C", project.source.string()});
  try {
    return capture({.arguments = std::move(arguments), .environment = {}, .directory = {}});
  } catch (const Error& error) {
    throw Error(std::string(error.what()) + " Fix: sudo apt-get install git");
  }
}

std::string last_lines(const std::string& text) {
  constexpr size_t most = 15;
  const auto lines = split_lines(text);
  const size_t from = lines.size() - std::min(most, lines.size());
  std::string last;
  for (size_t i = from; i < lines.size(); ++i) last += "\n" + lines[i];
  return last;
}

std::string hash_of(const Project& project, const std::string& commit) {
  const auto said =
      git(project, {"rev-parse", "--verify", "--quiet", "--end-of-options", commit + "^{commit}"});
  if (said.success()) return std::string(trim(said.output));
  throw Error("Unknown commit " + commit + " in " + project.source.string() + "." +
              last_lines(said.output) + " Fix: git log shows commits, git fetch brings more.");
}

}  // namespace

OtherCommit::OtherCommit(const Project& project, const std::string& commit)
    : ours_(project), other_(project) {
  const auto hash = hash_of(project, commit);
  name_ = std::string(trim(git(project, {"rev-parse", "--short", hash}).output));
  const auto folder = project.build / "golden" / hash.substr(0, 12);
  other_.source = folder / "source";
  other_.build = folder / "build";
  try {
    check_out(hash);
    configure();
  } catch (...) {
    remove();
    throw;
  }
}

OtherCommit::~OtherCommit() { remove(); }

void OtherCommit::check_out(const std::string& hash) {
  remove();  // what an interrupted comparison left
  const auto said =
      git(ours_, {"worktree", "add", "--force", "--detach", other_.source.string(), hash});
  if (!said.success()) throw Error(name_ + " could not be checked out:" + last_lines(said.output));
}

void OtherCommit::configure() {
  std::vector<std::string> arguments{
      ours_.cmake, "-S",      other_.source.string(), "-B", other_.build.string(), "-G",
      "Ninja",     "-Wno-dev"};
  for (const auto* name : kTaken) {
    if (const auto value = cached(ours_, name); !value.empty()) {
      arguments.push_back("-D" + std::string(name) + "=" + value);
    }
  }
  terminal::Stage stage("configuring " + name_);
  const auto said =
      capture({.arguments = std::move(arguments), .environment = {}, .directory = {}});
  if (said.success()) return stage.done();
  stage.failed();
  if (said.interrupted_by) throw Error("Interrupted.");
  throw Error(name_ + " cannot be configured:" + last_lines(said.output));
}

// As far as it goes: a destructor cannot complain, and the next comparison tries again.
void OtherCommit::remove() const {
  std::error_code ignored;
  try {
    if (fs::exists(other_.source, ignored)) {
      git(ours_, {"worktree", "remove", "--force", other_.source.string()});
    }
  } catch (const Error&) {
  }
  fs::remove_all(other_.source.parent_path(), ignored);
}

}  // namespace checker::golden
