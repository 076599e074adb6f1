#pragma once
/// Picks the files to grade from a folder or an archive.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "support/error.hpp"

namespace checker::grade {

/// What was handed in cannot be read, through the student's own doing.
class Unreadable : public Error {
 public:
  using Error::Error;
};

/// A step that is graded, and the files of its program, that with main() first.
struct GradedStep {
  std::string name;
  std::vector<std::string> files;
};

/// What was handed in of one step: texts by the names of its program's files, and its job script's.
struct StepFiles {
  std::map<std::string, std::string> program;
  std::string job;
};

struct Gathered {
  std::map<std::string, StepFiles> steps;  ///< by the step's name
  std::vector<std::string> remarks;        ///< what was left out, and why, a line each
  std::string version;                     ///< of the course (see course/version.hpp)
};

/// Is shown one path after the other, from the top of what was handed in, and takes what it wants:
/// the files of steps/NN_name/, sbatch/NN_name.sbatch, and single files named by step ("05.cpp",
/// "step_05.cpp", "05_all_reduce_loss.cpp"), wherever they lie. Of several for one step that is
/// taken which lies most like in the course. Solutions are nobody's work and are left out. The
/// paths are only looked at: nothing is ever written by their names.
class Gatherer {
 public:
  /// The steps in order.
  explicit Gatherer(std::vector<GradedStep> steps) : steps_(std::move(steps)) {}

  /// read: the file's bytes; called only if it is wanted, and may throw Error.
  void offer(const std::string& path, const std::function<std::string()>& read);
  /// Something that is not a regular file.
  void offer_other(const std::string& path, const std::string& what);

  Gathered take();

 private:
  struct Place {
    std::string step, file;  ///< empty: the job script
    int rank = 0;            ///< the less, the more like in the course
  };
  struct Found {
    int rank;
    std::string path, text;
  };

  bool place_of(const std::string& path, Place& place) const;

  std::vector<GradedStep> steps_;
  std::map<std::pair<std::string, std::string>, Found> found_;  // by step and file
  std::vector<std::string> remarks_;
  std::string version_;
};

/// The most that one file may hold, and the most files that are looked at.
constexpr size_t kLargestText = 1U << 20, kMostEntries = 100'000;

/// Walks through a folder. Throws Unreadable.
Gathered gather_folder(const std::string& folder, const std::vector<GradedStep>& steps);

/// Reads an archive, which may be hostile: best done in a box. Throws Unreadable
/// naming what is wrong.
Gathered gather_archive(const std::string& file, const std::vector<GradedStep>& steps);

/// Whether the name is that of an archive that gather_archive reads.
bool is_archive(const std::string& name);

/// Writes what was gathered as it lies in the course, for gather_folder to find; the remarks beside
/// it.
void write_gathered(const Gathered& gathered, const std::string& folder);
constexpr const char* kRemarksFile = "remarks";

}  // namespace checker::grade
