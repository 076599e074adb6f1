#pragma once
/// A student's project in a folder of its own, and a judge who says what a test wants.
#include <gtest/gtest.h>

#include <functional>

#include "course/course.hpp"
#include "files.hpp"
#include "judge/judging.hpp"
#include "support/project.hpp"

namespace checker::testing {

class Student {
 public:
  Student();

  Project project;
  Course course;

  std::filesystem::path path(const std::filesystem::path& file) const {
    return project.source / file;
  }
  std::string text(const std::filesystem::path& file) const { return read_file(path(file)); }
  void write(const std::filesystem::path& file, const std::string& text) const {
    write_file(path(file), text);
  }
  /// The step's trainer with a line more.
  void edit(const std::string& step) const;
  std::filesystem::path trainer(const std::string& step) const;

 private:
  TemporaryFolder folder_;
};

/// A verdict without findings.
Verdict verdict(int todo, State state, const std::string& reason = "");
/// A wrong one, with a short finding.
Verdict wrong(int todo, const std::string& what);
/// A report on a step; its TODOs that `verdicts` lacks are done.
Report report(const Course& course, const std::string& step, std::vector<Verdict> verdicts = {});

/// What an action prints on standard output.
std::string printed(const std::function<void()>& action);

/// Tests of a student's verbs.
class StudentTest : public ::testing::Test {
 protected:
  /// What the verb prints; its exit status is then in status_.
  template <typename Verb>
  std::string say(Verb verb, const std::vector<std::string>& arguments) {
    return printed([&] { status_ = verb(student_.project, arguments); });
  }

  Student student_;
  int status_ = -1;
};

}  // namespace checker::testing
