#include "lab/daemons.hpp"

#include <algorithm>
#include <cstdlib>

#include "lab/isolation.hpp"
#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

void use_daemon_environment(const fs::path& folder, const std::string& search_path) {
  ::setenv("PATH", search_path.c_str(), 1);
  ::setenv("HOME", "/root", 1);
  ::setenv("LANG", "C.UTF-8", 1);
  ::setenv("SLURM_CONF", (folder / "slurm.conf").c_str(), 1);
}

pid_t start_daemon(const fs::path& folder, const std::string& name,
                   const std::vector<std::string>& command) {
  write_to(folder / "log" / name);
  return spawn({command, {}, {}}, {.pipe_output = false, .pipe_error = false}).pid;
}

std::string last_words(const fs::path& folder, const std::string& name) {
  constexpr size_t most = 8;
  std::error_code error;
  if (!fs::exists(folder / "log" / name, error)) return "";
  const auto lines = split_lines(read_file(folder / "log" / name));
  std::string text;
  for (size_t i = lines.size() - std::min(most, lines.size()); i < lines.size(); ++i) {
    text += "\n  " + lines[i];
  }
  return text;
}

void run_script(const std::string& what, const std::string& script) {
  const auto ran = capture({{"sh", "-ec", script}, {}, {}});
  if (!ran.success()) throw Error("Cannot " + what + ": " + ran.output);
}

}  // namespace checker
