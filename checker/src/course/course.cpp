#include "course/course.hpp"

#include <algorithm>
#include <cctype>

#include "course/numbers.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

const Chapter& Course::chapter_of(const Step& step) const {
  const auto found = std::ranges::find(chapters, step.chapter, &Chapter::name);
  if (found == chapters.end()) throw Error("Unknown chapter: " + step.chapter + ".");
  return *found;
}

const Step& Course::step(std::string_view name) const {
  std::string padded(name);
  if (padded.size() == 1) padded.insert(0, "0");
  padded.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(padded.front())));
  for (const auto& candidate : steps) {
    if (candidate.name == name || candidate.label() == padded) return candidate;
  }
  std::vector<std::string> names;
  for (const auto& candidate : steps) names.push_back(candidate.name);
  // Numbers are fixed before all steps are there.
  const bool number = padded.size() == 2 && padded.find_first_not_of("0123456789") == padded.npos;
  const bool later_ones = std::ranges::any_of(steps, [&](const Step& candidate) {
    return !candidate.is_beside() && candidate.label() > padded;
  });
  if (number && padded != "00" && later_ones) {
    throw UsageError("Step " + padded + " is still to come. The steps are " + join(names, ", ") +
                     ".");
  }
  throw UsageError("Unknown step: " + std::string(name) + ". The steps are " + join(names, ", ") +
                   ".");
}

std::vector<const CourseFile*> Course::files_of(const Step& step) const {
  std::vector<const CourseFile*> files;
  for (const auto& file : chapter_of(step).files) {
    if (std::ranges::find(step.files, file.name) != step.files.end()) files.push_back(&file);
  }
  std::ranges::stable_sort(files, {}, [](const CourseFile* file) { return file->kind; });
  return files;
}

const CourseFile& Course::program_of(const Step& step) const { return *files_of(step).front(); }

const CourseFile* Course::job_of(const Step& step) const {
  const auto files = files_of(step);
  const auto found = std::ranges::find(files, FileKind::job, &CourseFile::kind);
  return found == files.end() ? nullptr : *found;
}

std::vector<const CourseFile*> Course::student_files(const Step& step) const {
  auto files = files_of(step);
  std::erase_if(files, [&](const CourseFile* file) {
    return file->kind == FileKind::job && !edits(step, *file);
  });
  return files;
}

const CourseFile& Course::source_of(const Todo& todo) const {
  for (const auto* file : files_of(step_of(todo))) {
    if (file->source.todos().contains(todo.number)) return *file;
  }
  throw Error(name_of_todo(todo.number) + " has no place in any file.");
}

bool Course::edits(const Step& step, const CourseFile& file) const {
  const auto places = file.source.todos();
  return std::ranges::any_of(step.todos, [&](int todo) { return places.contains(todo); });
}

bool Course::edits_job(const Step& step) const {
  const auto* job = job_of(step);
  return job != nullptr && edits(step, *job);
}

std::vector<int> Course::todos_of(const Step& step, bool in_job) const {
  auto numbers = step.todos;
  std::erase_if(numbers, [&](int number) {
    return (source_of(todos.at(number)).kind == FileKind::job) != in_job;
  });
  return numbers;
}

std::map<std::string, std::string> Course::models_of(const Step& step) const {
  auto models = step.parent.empty() ? std::map<std::string, std::string>{}
                                    : models_of(this->step(step.parent));
  for (const int number : step.todos) {
    for (const auto& [model, name] : todos.at(number).models) models[model] = name;
  }
  return models;
}

fs::path Course::path_of(const Step& step, const CourseFile& file, bool solution) const {
  const auto folder = fs::path(solution ? "solutions" : "steps") / step.name;
  if (file.kind != FileKind::job) return folder / file.name;
  const auto name = step.name + ".sbatch";
  return solution ? folder / name : fs::path("sbatch") / name;
}

fs::path Course::file_of(const Todo& todo) const {
  return path_of(step_of(todo), source_of(todo), false);
}

int Course::todo_of(std::string_view feature) const {
  if (const auto number = todo_labelled(feature); number && todos.contains(*number)) return *number;
  int found = 0;
  std::vector<std::string> known;
  for (const auto& [number, todo] : todos) {
    if (std::ranges::find(todo.features, feature) != todo.features.end()) found = number;
    known.insert(known.end(), todo.features.begin(), todo.features.end());
  }
  if (found == 0) {
    throw Error("The course has no TODO that switches the feature " + std::string(feature) + " on" +
                did_you_mean(feature, known));
  }
  return found;
}

}  // namespace checker
