#pragma once
/// Helpers of the tests.
#include <filesystem>
#include <string>
#include <vector>

#include "process/ranks.hpp"
#include "support/files.hpp"

namespace checker {
struct Course;
struct CourseFile;
}  // namespace checker

namespace checker::testing {

/// The course of this project, to be copied and spoilt, and the chapter that most tests are about.
std::filesystem::path chapters_folder();
constexpr const char* kChapter = "data_parallel";

/// The same, loaded once (course/course.hpp says what it holds).
const Course& course();
/// That chapter's program and job script.
const CourseFile& trainer_file();
const CourseFile& job_file();

/// A copy of the project's course in a folder of its own.
class CourseCopy {
 public:
  CourseCopy();

  std::filesystem::path path() const { return folder_.path() / "course"; }
  std::filesystem::path chapter() const { return path() / kChapter; }
  /// Replaces the first occurrence of a text that must be there, in a file of that chapter.
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
