#pragma once
/// The ladder: the single source of the course's steps, solutions, job scripts and texts.
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "ladder/source.hpp"

namespace checker {

/// One numbered edit.
struct Todo {
  int number = 0;
  std::string title;                  ///< an order, one line
  std::string done;                   ///< what is so once it is done, one line
  std::string step;                   ///< the step's name
  std::vector<std::string> features;  ///< what is switched on once it is done
  std::vector<int> needs;             ///< TODOs without which it cannot be judged
  std::string here_too;               ///< what to do at its further places, one line
  std::string text;                   ///< what, where, why, what to expect; paragraphs
  std::string hint;
  std::string explanation;
};

/// One numbered directory of the course.
struct Step {
  int number = 0;
  std::string name;   ///< "02_setup"
  std::string title;  ///< one line
  std::string intro;  ///< one paragraph
  std::string run;    ///< the command to try it
  std::vector<int> todos;
  std::vector<std::string> given;  ///< features that its files have ready-made, as do later ones

  std::string digits() const { return name.substr(0, 2); }
};

struct Ladder {
  std::vector<Step> steps;  ///< in order, numbered from 1
  std::map<int, Todo> todos;
  Source trainer;
  Source job;
  std::string task;                         ///< what trainers are judged with
  std::vector<std::vector<size_t>> worlds;  ///< in which they are judged: the node of each rank

  /// The file in which a student does this TODO, from the project's folder.
  std::filesystem::path file_of(const Todo& todo) const;
  /// The TODO that switches a feature on; of several the last, which is where it shows. Throws
  /// Error if none does.
  int todo_of(std::string_view feature) const;
  /// Whether any of the step's TODOs is done in its job script.
  bool edits_job(const Step& step) const;
  /// A step by number or name ("2", "02", "02_setup"). Throws UsageError naming the steps there
  /// are.
  const Step& step(std::string_view name) const;
};

/// Reads ladder.yaml, todos/*.yaml, trainer.cpp and job.sbatch of this folder and checks that they
/// fit together. Throws Error "file:line: what".
Ladder load_ladder(const std::filesystem::path& folder);

}  // namespace checker
