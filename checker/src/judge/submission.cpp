#include "judge/submission.hpp"

#include <algorithm>

#include "judge/given.hpp"
#include "support/files.hpp"

namespace checker {

namespace fs = std::filesystem;

Submission::Submission(const Project& project, const Course& course, const Step& step,
                       const CheckOptions& options)
    : project_(project), course_(course), step_(step), options_(options) {
  const auto& main = course.program_of(step);
  source_ = project.source / course.path_of(step, main, options.solution);
  // A program that is judged by itself lies beside its text.
  if (!options.program.empty()) {
    source_ = fs::absolute(fs::path(options.program).parent_path() / main.name);
  }
  shown_ = project.shown(source_);
  if (options.hand_in) {
    source_ = options.hand_in->folder / main.name;
    shown_ = course.path_of(step, main, false).string();
  }
  job_ = job_text();
}

bool Submission::is_a_students() const {
  return options_.student || (options_.program.empty() && !options_.solution);
}

std::vector<const CourseFile*> Submission::files() const {
  auto files = course_.student_files(step_);
  std::erase_if(
      files, [&](const CourseFile* file) { return file->kind == FileKind::job && job_.empty(); });
  return files;
}

std::set<int> Submission::todos_of_files(TodosOfText todos) const {
  if (!is_a_students()) return {};
  std::set<int> all;
  for (const auto* file : files()) {
    all.merge(todos(course_, file->source, step_, text_of(*file)));
  }
  return all;
}

std::set<int> Submission::untouched() const { return todos_of_files(untouched_todos); }

std::set<int> Submission::doubtful() const { return todos_of_files(doubtful_todos); }

bool Submission::is_as_given() const {
  return !step_.repair && std::ranges::all_of(files(), [&](const CourseFile* file) {
    return is_given_code(course_, file->source, step_, text_of(*file));
  });
}

std::string Submission::text_of(const CourseFile& file) const {
  if (file.kind == FileKind::job) return job_;
  if (!options_.hand_in) return read_file(source_.parent_path() / file.name);
  const auto found = options_.hand_in->files.find(file.name);
  return found == options_.hand_in->files.end() ? "" : found->second;
}

std::string Submission::job_text() const {
  const auto* job = course_.job_of(step_);
  if (options_.hand_in && job) {
    const auto found = options_.hand_in->files.find(job->name);
    return found == options_.hand_in->files.end() ? "" : found->second;
  }
  if (!options_.job_script.empty()) return options_.job_script;
  if (!options_.program.empty() || !course_.edits_job(step_)) return "";
  return read_file(project_.source / course_.path_of(step_, *job, options_.solution));
}

}  // namespace checker
