#pragma once
/// What of a step as a student finds it still stands in a student's file.
#include <set>
#include <string>

#include "ladder/ladder.hpp"

namespace checker {

/// Whether the file holds the code of the step as given; comments and layout make no difference.
/// source: what the file is made from, the ladder's trainer or job.
bool is_given_code(const Ladder& ladder, const Source& source, const Step& step,
                   const std::string& text);

/// The step's TODOs at whose places the file holds the code as given. It says nothing of code
/// elsewhere: only what the program does tells whether such a TODO was begun there.
std::set<int> untouched_todos(const Ladder& ladder, const Source& source, const Step& step,
                              const std::string& text);

}  // namespace checker
