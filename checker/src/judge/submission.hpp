#pragma once
/// What is judged of one step: a student's files, a hand-in, the reference, or a program by itself.
#include <filesystem>
#include <set>
#include <string>

#include "judge/check.hpp"

namespace checker {

class Submission {
 public:
  /// All of these must outlive it. Throws Error if the job script cannot be read.
  Submission(const Project& project, const Course& course, const Step& step,
             const CheckOptions& options);

  /// The program's file with main(), and how to name it.
  const std::filesystem::path& source() const { return source_; }
  const std::string& shown() const { return shown_; }
  /// The text of one of the step's files. Throws Error if it cannot be read.
  std::string text_of(const CourseFile& file) const;
  /// The job script's text; empty where none is judged.
  const std::string& job() const { return job_; }
  /// Where the code is the given one, the TODOs of a student's files are open.
  bool is_a_students() const;
  /// The TODOs at whose places the code is the given one; none in what is not a student's.
  std::set<int> untouched() const;
  /// Of those the ones whose code may stand in another one's place; see judge/given.hpp.
  std::set<int> doubtful() const;
  /// Whether all of it is the original code, so there is nothing to judge. Throws Error if a file
  /// cannot be read.
  bool is_as_given() const;

 private:
  using TodosOfText = std::set<int> (*)(const Course&, const Source&, const Step&,
                                        const std::string&);

  std::string job_text() const;
  /// Those of all files together; none in what is not a student's.
  std::set<int> todos_of_files(TodosOfText todos) const;
  /// The files that are judged.
  std::vector<const CourseFile*> files() const;

  const Project& project_;
  const Course& course_;
  const Step& step_;
  const CheckOptions& options_;
  std::filesystem::path source_;
  std::string shown_, job_;
};

}  // namespace checker
