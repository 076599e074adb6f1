#pragma once
/// What compilers' errors mean: compile_errors.yaml of a step's chapter, of the chapters that it
/// builds on, and of the course. An entry of the list `errors` has
///
///   error: a regular expression, or several, for clang's words and GCC's: the first error has it
///   line: one that the line of code has (optional)
///   at: one that it has from the error's column on (optional)
///   notes: one that a line has which the compiler adds to the error (optional)
///   what: what is wrong; {1} stands for what the first brackets of `error` hold
///   fix: what to do
///   todo: where it is fixed, if that may be elsewhere than at the error's line (optional)
///   line_before: true where GCC names the token behind the fault (optional)
///
/// The first entry that fits is the one. Where none fits, nothing is said.
#include <filesystem>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "course/course.hpp"

namespace checker {

/// A compiler's error as entries look at it.
struct CompilerWords {
  std::string message;
  std::string line;  ///< of code; empty where it is not known
  std::string at;    ///< the same, from the error's column on
  std::vector<std::string> notes;
};

struct CompileMeaning {
  std::string what, fix;
  int todo = 0;
  bool line_before = false;
};

class CompileWords {
 public:
  /// Reads the files; most checks need none of them. Throws Error "file:line: what".
  CompileWords(const Course& course, const Step& step);

  std::optional<CompileMeaning> meaning_of(const CompilerWords& words) const;

 private:
  struct Entry {
    std::vector<std::regex> errors;
    std::optional<std::regex> line, at, notes;
    Template what, fix;
    int todo = 0;
    bool line_before = false;
    std::string place;
  };

  void add(const std::filesystem::path& file);
  static CompileMeaning filled(const Entry& entry, const Values& values);

  std::vector<Entry> entries_;
};

}  // namespace checker
