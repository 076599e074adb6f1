#pragma once
/// What was said last about each of the student's TODOs, kept in steps/.progress.
#include <map>
#include <string>
#include <vector>

#include "course/course.hpp"
#include "judge/verdict.hpp"
#include "state/step_files.hpp"
#include "support/project.hpp"

namespace checker {

/// The last verdict on a TODO.
struct Remembered {
  State state = State::open;
  std::string file;         ///< that was judged, from the project's folder
  std::string fingerprint;  ///< of its text then
  std::string reason;       ///< of not_judged
};

/// How far a student has asked for help on a TODO: each includes those before it.
enum class Help { none, hint, shape, answer };

struct Memory {
  std::map<int, Remembered> todos;
  std::map<int, Help> help;
  std::map<std::string, bool> quiz;  ///< by question: whether the last answer was right
  std::string remark;  ///< what the user should know of the file: it was set aside; or empty
};

/// Reads the file. One that holds anything else is set aside as steps/.progress.broken, once, and
/// said so in the remark. Never throws for what the file is or holds.
Memory recall(const Project& project);

/// Notes the verdicts on the step's own TODOs of a report about the texts with these fingerprints;
/// what else the file holds stays. Returns a remark if it could not, else nothing.
std::string remember(const Project& project, const Course& course, const Report& report,
                     const Fingerprints& fingerprints);

/// Notes that this much help was shown on these TODOs, where it is more than before. Help is given
/// also where it cannot be noted.
void remember_help(const Project& project, const std::vector<int>& todos, Help help);

/// Notes how the last answer to a question was, if it can.
void remember_answer(const Project& project, const std::string& question, bool right);

/// The file has another text now that stands as the old one did: an edit was carried over into a
/// newer version of the course. Verdicts on the old text count for the new one.
void follow(const Project& project, const std::string& file, const std::string& old_fingerprint,
            const std::string& new_fingerprint);

}  // namespace checker
