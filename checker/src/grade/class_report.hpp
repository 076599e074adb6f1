#pragma once
/// The result of a grading: one report in memory, which terminal, JSON, CSV, JUnit and HTML show.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "course/course.hpp"
#include "grade/scheme.hpp"
#include "judge/verdict.hpp"

namespace checker::grade {

/// How one TODO of one student stands.
enum class Mark {
  done,
  wrong,
  open,
  waits,       ///< for another TODO, or for a program that compiles
  missing,     ///< the step was not handed in
  not_graded,  ///< could not be tried, through no fault of the student's
};

struct Student {
  std::string name;  ///< any bytes: the name of a folder or an archive
  std::optional<Time> handed_in;
  bool absent = false, late = false;
  std::string problem;  ///< why nothing, or not all, could be judged
  std::vector<std::string> remarks;
  std::string version;          ///< of the course that it was handed in for
  std::map<int, Mark> marks;    ///< by TODO, all of them
  std::vector<Report> reports;  ///< by step, those that were judged
  double points = 0;
  double possible = 0;  ///< without what could not be graded

  /// Why a TODO is wrong; null where it is not.
  const Finding* finding(int todo) const;
};

/// How a class did in one TODO.
struct TodoSummary {
  int todo = 0;
  std::map<Mark, size_t> counts;
  std::vector<std::pair<std::string, size_t>> findings;  ///< by kind, the most frequent first
};

struct ClassReport {
  std::string course;  ///< its version
  Time when{};
  Scheme scheme;
  std::map<int, std::string> titles;  ///< of the TODOs
  std::map<int, std::string> steps;   ///< of the TODOs
  std::vector<Student> students;      ///< by name

  std::vector<TodoSummary> by_todo() const;
};

/// A student's marks and points from what was judged.
void mark(Student& student, const Course& course, const Scheme& scheme, bool judged);

/// "done", "wrong", "open", "waits", "missing", "not graded".
std::string name_of(Mark mark);

/// "7.5", "12".
std::string shown_points(double points);

/// A name that may be any bytes as a line of text: what is not UTF-8, a control or a direction mark
/// becomes \xNN; a long one is cut in the middle.
std::string shown_name(const std::string& name, size_t longest = 80);

}  // namespace checker::grade
