#pragma once
/// Judges solutions into which a test has written something.
#include <map>
#include <string>
#include <vector>

#include "judge/build_cache.hpp"
#include "judge/check.hpp"

namespace checker {

/// An edit of a step's solution.
struct EditedSolution {
  std::string name;   ///< of its folder in the build folder
  std::string step;   ///< "04"
  std::string after;  ///< a whole line of the solution, which must be there
  std::string code;   ///< what is to follow it
};

/// Some of them, built together, because that takes no longer than one alone. They run forked from
/// one process.
class EditedSolutions {
 public:
  /// Throws Error if an edit does not fit.
  explicit EditedSolutions(const std::vector<EditedSolution>& all);

  /// Throws Error with the compiler's words if it did not build.
  Report judge(const std::string& name, const std::vector<int>& worlds);

 private:
  Project project_;
  Course course_;
  std::map<std::string, std::string> steps_;  ///< by name
  std::vector<CachedProgram> pieces_;
  ForkServers servers_;
};

}  // namespace checker
