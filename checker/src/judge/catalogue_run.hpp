#pragma once
/// Judges the whole catalogue: is the judge right?
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "course/catalogue.hpp"
#include "course/whole_programs.hpp"
#include "judge/build_cache.hpp"
#include "judge/check.hpp"

namespace checker {

enum class Expectation {
  rejected,
  accepted,
  open,    ///< known as what was given; and rejected by what it does, if that were not known
  states,  ///< each TODO stands as the entry says
};

/// How a program is shown to the judge.
enum class Form {
  solution,  ///< by what it does alone
  student,   ///< as a student's file, with the comments of the step's TODOs
  whole,     ///< a file that somebody wrote, as a student's
};

struct Sample {
  int todo = 0;                 ///< 0: of no one in particular
  std::vector<int> or_todos{};  ///< may be blamed in its place
  std::string name;
  std::vector<NamedText> files;  ///< the job script, or the program's files, that with main() first
  Expectation wanted = Expectation::rejected;
  Form form = Form::solution;
  const Step* step = nullptr;
  bool quick = false;
  bool job = false;                     ///< a job script; else a program
  std::string words{};                  ///< the belief behind a wrong edit; why a variant is right
  std::map<int, std::string> states{};  ///< how TODOs must stand; of unfinished work
  std::string finding{};                ///< the first finding's id, where the entry says it

  /// "name", or "name, as a student's"
  std::string title() const;
  std::string text() const { return text_of(files); }
};

struct SampleResult {
  Sample sample;
  bool as_wanted = false;       ///< rejected, accepted, or with the states that it must have
  bool blamed_rightly = false;  ///< of a rejected one: the TODO named first is the sample's own
  /// Relative: of a right program the largest that any rule looked at, of a wrong one that of the
  /// quantity that decided; 0 where no number did.
  double deviation = 0;
  std::string problem{};            ///< what is not as wanted, in a line; else empty
  std::string findings{};           ///< "TODO 8 gradients_summed; TODO 9 same_order_again"
  std::vector<Verdict> verdicts{};  ///< with every word

  bool fine() const { return as_wanted && blamed_rightly; }
};

/// Every original step (rejected, by what it does), every solution, every wrong edit and variant,
/// in both forms; unfinished work as a student's. Forms of a program follow each other.
std::vector<Sample> catalogue_samples(const Course& course,
                                      const std::vector<CatalogueEntry>& catalogue);

/// Programs that are not edits, each as a student's file.
std::vector<Sample> whole_samples(const Course& course, const std::vector<WholeProgram>& programs);

/// Builds and judges them; told of each result as it comes. Of the options only device and build
/// count.
void judge_samples(const Project& project, const Course& course, const std::vector<Sample>& samples,
                   const CheckOptions& how,
                   const std::function<void(const SampleResult&)>& on_result);

}  // namespace checker
