#include "oracle.hpp"

#include <gtest/gtest.h>

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
  output.status = pclose(pipe);
  return output;
}

/// The first Python that has torch: the one named in the environment, the tests' own, the system's.
const std::optional<std::string>& python() {
  static const std::optional<std::string> found = []() -> std::optional<std::string> {
    const char* named = std::getenv("ORACLE_PYTHON");
    for (const std::string& candidate :
         {std::string(named != nullptr ? named : ""), std::string(ORACLE_VENV "/bin/python3"),
          std::string("python3")}) {
      if (candidate.empty()) continue;
      const auto probe =
          run(quoted(candidate) + " -c 'import torch; print(torch.__version__)' 2>/dev/null");
      if (probe.status == 0 && probe.text.starts_with("2.11.")) return candidate;
    }
    return std::nullopt;
  }();
  return found;
}

}  // namespace

bool available() { return python().has_value(); }

std::optional<nlohmann::json> json(const std::string& script,
                                   const std::vector<std::string>& arguments) {
  if (!available()) return std::nullopt;
  std::string command = quoted(*python()) + " " + quoted(ORACLE_SCRIPTS "/" + script);
  for (const auto& argument : arguments) command += " " + quoted(argument);
  const auto output = run(command);
  if (output.status != 0) {
    ADD_FAILURE() << command << " failed:\n" << output.text;
    return nlohmann::json::array();
  }
  return nlohmann::json::parse(output.text);
}

}  // namespace oracle
