#pragma once
/// Turns findings into verdicts: which TODO is wrong, which waits for another.
#include <set>
#include <string>
#include <vector>

#include "judge/run_context.hpp"

namespace checker {

/// The verdicts of these TODOs of a step, then those of earlier ones that have findings. untouched:
/// those at whose places the code is the given one (see judge/given.hpp). Such a TODO is open
/// unless the program does something about it that is wrong. cut_off: the run of some world did not
/// end, so that nothing can be said of what came later. doubtful: of the untouched ones those whose
/// code may stand in another one's place; after such a run they are not judged.
std::vector<Verdict> to_verdicts(const Course& course, const Step& step,
                                 const std::vector<int>& todos, const Findings& findings,
                                 const std::set<int>& untouched, bool cut_off,
                                 const std::set<int>& doubtful = {});

}  // namespace checker
