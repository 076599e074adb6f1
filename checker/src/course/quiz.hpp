#pragma once
/// Questions that ask to predict what a program does, or why: quiz.yaml beside the chapters.
#include <optional>
#include <string>
#include <vector>

#include "course/course.hpp"

namespace checker {

/// What answers a question by running.
struct Proof {
  std::string step;
  bool judged = false;               ///< the step's original program is judged, else a run
  size_t world = 2;                  ///< of a run of the step's solution
  std::vector<std::string> options;  ///< of the trainer
  std::string config;                ///< its configuration file's text; empty: none
  std::string shows;                 ///< a regular expression that fits a line of what is shown
  size_t times = 0;                  ///< so many lines; 0: at least one
};

struct Question {
  std::string name;  ///< small letters, digits and underscores
  std::string ask;   ///< paragraphs and examples
  std::vector<std::string> choices;
  size_t right = 0;  ///< of them
  std::string why;
  std::optional<Proof> proof;
};

/// All questions, in order. Throws Error "file:line: what", also for one that does not fit the
/// course.
std::vector<Question> load_quiz(const std::filesystem::path& folder, const Course& course);

/// "a", "b": a choice's letter.
std::string letter_of(size_t choice);

}  // namespace checker
