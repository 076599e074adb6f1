#include "student.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "course/render.hpp"
#include "course/update.hpp"

namespace checker::testing {

namespace fs = std::filesystem;

Student::Student() : course(load_course(chapters_folder())) {
  ::setenv("LC_ALL", "C.UTF-8", 1);
  project.source = folder_.path() / "project";
  project.build = project.source / "build" / "cpu";
  fs::create_directories(project.build);
  fs::create_directories(project.source / "checker");
  fs::copy(chapters_folder(), project.chapters(), fs::copy_options::recursive);
  update_files(render_all(course), project.source);
}

fs::path Student::trainer(const std::string& step) const {
  return fs::path("steps") / course.step(step).name / "train.cpp";
}

void Student::edit(const std::string& step) const {
  write(trainer(step), text(trainer(step)) + "// edited\n");
}

Verdict verdict(int todo, State state, const std::string& reason) {
  return {.todo = todo, .state = state, .findings = {}, .reason = reason};
}

Verdict wrong(int todo, const std::string& what) {
  auto result = verdict(todo, State::wrong);
  result.findings.push_back(
      {.todo = todo, .id = "test", .what = what, .why = "", .evidence = {}, .where = ""});
  return result;
}

Report report(const Course& course, const std::string& step, std::vector<Verdict> verdicts) {
  Report result;
  result.step = course.step(step).name;
  for (const int todo : course.step(step).todos) {
    const auto given = std::ranges::find(verdicts, todo, &Verdict::todo);
    result.verdicts.push_back(given == verdicts.end() ? verdict(todo, State::done) : *given);
  }
  return result;
}

std::string printed(const std::function<void()>& action) {
  ::testing::internal::CaptureStdout();
  try {
    action();
  } catch (...) {
    ::testing::internal::GetCapturedStdout();
    throw;
  }
  return ::testing::internal::GetCapturedStdout();
}

}  // namespace checker::testing
