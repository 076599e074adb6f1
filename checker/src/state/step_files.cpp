#include "state/step_files.hpp"

#include <algorithm>

#include "course/render.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

// The reference starts its own program; the student's file starts the student's.
std::string solved_text(const Course& course, const CourseFile& file, const Step& step) {
  return replaced(render(course, file, step, Rendering::solution), "bin/solution_", "bin/step_");
}

}  // namespace

std::vector<StepFile> step_files(const Course& course, const Step& step) {
  std::vector<StepFile> files;
  for (const auto* file : course.student_files(step)) {
    files.push_back({course.path_of(step, *file, false), course.path_of(step, *file, true),
                     file->source.comment(), render(course, *file, step, Rendering::step),
                     solved_text(course, *file, step)});
  }
  return files;
}

std::vector<fs::path> step_paths(const Course& course, const Step& step) {
  std::vector<fs::path> paths;
  for (const auto* file : course.student_files(step)) {
    paths.push_back(course.path_of(step, *file, false));
  }
  std::ranges::sort(paths);
  return paths;
}

std::string fingerprint_of(const Project& project, const fs::path& file) try {
  return fingerprint(read_file(project.source / file));
} catch (const Error&) {
  return "";
}

Fingerprints take_fingerprints(const Project& project, const Course& course, const Step& step) {
  Fingerprints fingerprints;
  for (const auto& path : step_paths(course, step)) {
    fingerprints[path] = fingerprint_of(project, path);
  }
  return fingerprints;
}

}  // namespace checker
