#pragma once
/// Reads what a compiler says, and what it warns of in a student's files. It compiles only what has
/// changed, so the warnings are kept for the checks that follow.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "judge/verdict.hpp"

namespace checker {

/// One line of a compiler's output, "train.cpp:31:5: error: expected ';'".
struct CompilerMessage {
  std::string file, line, column;
  std::string kind;  ///< "error", "fatal error", "warning" or "note"
  std::string text;
};

/// Nothing if the line is not such a message.
std::optional<CompilerMessage> compiler_message(const std::string& line);

/// The warnings in a compiler's output (clang's or GCC's) about `source` and the files beside it,
/// each once. A parameter that nothing uses is none: steps have such, until a TODO is done.
std::vector<CompilerWarning> warnings_in(const std::vector<std::string>& output,
                                         const std::filesystem::path& source,
                                         const std::string& shown);

/// A file that keeps warnings until the program is compiled again.
class KeptWarnings {
 public:
  explicit KeptWarnings(std::filesystem::path file) : file_(std::move(file)) {}

  /// Throws Error if it cannot be written.
  void keep(const std::vector<CompilerWarning>& warnings) const;
  /// None where nothing was kept.
  std::vector<CompilerWarning> read() const;

 private:
  std::filesystem::path file_;
};

}  // namespace checker
