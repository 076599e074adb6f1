#include "jobs/torchrun.hpp"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>

#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

constexpr auto kImportPatience = 60s;  // A cold network file system needs long to import torch.

// The last line that holds anything: there Python names the exception.
std::string final_line(const std::string& output) {
  const auto lines = split_lines(trim(output));
  return lines.empty() ? "no output" : lines.back();
}

std::optional<std::string> ask(const fs::path& torchrun) try {
  const auto said = capture({{torchrun.string(), "--help"}, {"LC_ALL=C"}, {}}, kImportPatience);
  if (said.interrupted_by) throw Error("Interrupted.");
  if (said.out_of_time) return "no answer within a minute";
  if (said.success()) return std::nullopt;
  return final_line(said.output);
} catch (const Error& error) {
  return error.what();
}

// When the environment's packages were last changed; pip adds and removes entries of this folder.
fs::file_time_type last_change(const fs::path& environment) {
  auto latest = fs::last_write_time(environment / "bin" / "torchrun");
  for (const auto& python : fs::directory_iterator(environment / "lib")) {
    const auto packages = python.path() / "site-packages";
    if (fs::exists(packages)) latest = std::max(latest, fs::last_write_time(packages));
  }
  return latest;
}

}  // namespace

fs::path own_torchrun(const Project& project) {
  return project.source / ".venv" / "bin" / "torchrun";
}

std::optional<std::string> why_not_running(const fs::path& torchrun) {
  static std::map<fs::path, std::optional<std::string>> answers;
  const auto known = answers.find(torchrun);
  if (known != answers.end()) return known->second;
  std::error_code ignored;
  auto answer = torchrun.is_absolute() && !fs::exists(torchrun, ignored)
                    ? std::optional<std::string>(torchrun.string() + " is not there")
                    : ask(torchrun);
  return answers[torchrun] = std::move(answer);
}

std::optional<std::string> why_own_not_running(const Project& project) {
  const auto torchrun = own_torchrun(project);
  const auto environment = torchrun.parent_path().parent_path();
  const auto mark = environment / ".torchrun-runs";
  std::error_code ignored;
  if (fs::exists(mark, ignored) && fs::exists(torchrun, ignored) &&
      fs::last_write_time(mark) > last_change(environment)) {
    return std::nullopt;
  }
  auto why = why_not_running(torchrun);
  // Where the folder is another's it stays unwritten, and the next check asks again.
  if (!why) std::ofstream(mark) << "torchrun gave its help\n";
  return why;
}

}  // namespace checker
