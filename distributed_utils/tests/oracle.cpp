#include "oracle.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace oracle {
namespace {

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

struct Output {
  int status;
  std::string text;
};

Output run(const std::string& command) {
  Output output = {-1, {}};
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return output;
  std::array<char, 4096> buffer = {};
  while (const size_t size = fread(buffer.data(), 1, buffer.size(), pipe)) {
    output.text.append(buffer.data(), size);
  }
  const int status = pclose(pipe);
  output.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return output;
}

constexpr int kNoTorch = 77, kNoProgram = 127;

/// Runs a script, if torch 2.11 can be imported: loading it takes two seconds, so it is not asked
/// before.
constexpr const char* kStart = R"(import runpy, sys
try:
    import torch
    assert torch.__version__.startswith("2.11.")
except Exception:
    sys.exit(77)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__"))";

/// The Pythons that may have torch: the one named in the environment, the tests' own, the system's.
std::vector<std::string> pythons() {
  std::vector<std::string> found{ORACLE_VENV "/bin/python3", "python3"};
  if (const char* named = std::getenv("ORACLE_PYTHON")) found.insert(found.begin(), named);
  return found;
}

}  // namespace

std::optional<nlohmann::json> json(const std::string& script,
                                   const std::vector<std::string>& arguments) {
  std::string words = " -c " + quoted(kStart) + " " + quoted(ORACLE_SCRIPTS "/" + script);
  for (const auto& argument : arguments) words += " " + quoted(argument);
  for (const auto& python : pythons()) {
    const auto output = run(quoted(python) + words);
    if (output.status == kNoTorch || output.status == kNoProgram) continue;
    if (output.status == 0) return nlohmann::json::parse(output.text);
    ADD_FAILURE() << python << " " << script << " ended with status " << output.status << ":\n"
                  << output.text;
    return nlohmann::json::array();
  }
  return std::nullopt;
}

}  // namespace oracle
