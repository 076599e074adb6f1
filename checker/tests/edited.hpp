#pragma once
/// Judges solutions into which a test has written something.
#include <string>
#include <vector>

#include "judge/check.hpp"

namespace checker {

/// An edit of a step's solution.
struct EditedSolution {
  std::string name;   ///< of its folder in the build folder
  std::string step;   ///< "04"
  std::string after;  ///< a whole line of the solution, which must be there
  std::string code;   ///< what is to follow it
};

/// Judges the one of this name. All are built, because together that takes no longer than one
/// alone, and the tests of the others find theirs. Throws Error with the compiler's words if it
/// does not build.
Report judge_edited(const std::vector<EditedSolution>& all, const std::string& name,
                    const std::vector<int>& worlds);

}  // namespace checker
