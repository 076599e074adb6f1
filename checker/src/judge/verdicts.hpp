#pragma once
/// From findings to verdicts: which TODO is wrong, which waits for another.
#include <set>
#include <string>
#include <vector>

#include "judge/scene.hpp"

namespace checker {

/// The step's TODOs whose places in the student's file still read as given. source: what the file
/// is made from, the ladder's trainer or job.
std::set<int> untouched_todos(const Ladder& ladder, const Source& source, const Step& step,
                              const std::string& text);

/// The verdicts of a step's TODOs in that file, then those of earlier ones that have findings.
/// untouched: read as given, so that a finding makes them open rather than wrong. cut_off: the run
/// of some world did not come to its end, so that nothing can be said of what came later.
std::vector<Verdict> to_verdicts(const Ladder& ladder, const Source& source, const Step& step,
                                 const Findings& findings, const std::set<int>& untouched,
                                 bool cut_off);

}  // namespace checker
