#include "doctor/look_up.hpp"

#include <algorithm>
#include <chrono>

#include "process/capture.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::doctor {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

// The value of `#define NAME value` in a header; empty if it does not say.
std::string defined_in(const fs::path& header, const std::string& name) {
  if (!fs::exists(header)) return "";
  for (const auto& line : split_lines(read_file(header))) {
    const auto text = trim(line);
    const auto begin = "#define " + name + " ";
    if (text.starts_with(begin)) return std::string(trim(text.substr(begin.size())));
  }
  return "";
}

}  // namespace

std::optional<std::string> answer_of(const std::vector<std::string>& command) {
  try {
    const auto answer = capture({command, {"LC_ALL=C"}, {}}, 10s);
    if (answer.interrupted_by) throw Error("Interrupted.");
    if (answer.success() && !answer.out_of_time) return std::string(trim(answer.output));
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): it is not there, which is an answer
  }
  return std::nullopt;
}

std::string version_behind(const std::string& text, const std::string& word) {
  const auto from = text.find(word);
  if (from == text.npos) return "";
  const auto begin = text.find_first_of("0123456789", from + word.size());
  if (begin == text.npos) return "";
  const auto version = text.substr(begin, text.find_first_not_of("0123456789.", begin) - begin);
  return version.substr(0, version.find_last_not_of('.') + 1);
}

bool at_least(const std::string& version, const std::string& least) {
  const auto have = split(version, '.'), want = split(least, '.');
  for (size_t i = 0; i < want.size(); ++i) {
    const int mine = i < have.size() ? whole_number(have[i], 0) : 0;
    const int wanted = whole_number(want[i], 0);
    if (mine != wanted) return mine > wanted;
  }
  return true;
}

std::string version_in(const fs::path& header, const std::string& prefix) {
  std::string version;
  for (const char* part : {"MAJOR", "MINOR", "PATCH"}) {
    version += (version.empty() ? "" : ".") + defined_in(header, prefix + part);
  }
  return version;
}

}  // namespace checker::doctor
