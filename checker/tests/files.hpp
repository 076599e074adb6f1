#pragma once
/// Helpers of the tests.
#include <filesystem>
#include <string>
#include <vector>

#include "process/ranks.hpp"
#include "support/files.hpp"

namespace checker {
struct Ladder;
}

namespace checker::testing {

/// The ladder of this project, to be copied and spoilt.
std::filesystem::path project_ladder();

/// The same, loaded once (ladder/ladder.hpp says what it holds).
const Ladder& ladder();

/// A copy of the project's ladder in a folder of its own.
class LadderCopy {
 public:
  LadderCopy();

  std::filesystem::path path() const { return folder_.path() / "ladder"; }
  /// Replaces the first occurrence of a text that must be there.
  void replace(const std::string& file, const std::string& text, const std::string& by) const;

 private:
  TemporaryFolder folder_;
};

/// The message of the Error that an action throws; "no error" if it does not.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

/// What a program printed on both streams, and how it ended.
struct Outcome {
  int status = 0;
  std::string text;
};

Outcome run_program(std::vector<std::string> arguments, std::vector<std::string> environment = {},
                    const std::filesystem::path& directory = {});

}  // namespace checker::testing
