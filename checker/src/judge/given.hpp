#pragma once
/// Finds the original code of a step that is still in a student's file.
#include <set>
#include <string>

#include "course/course.hpp"

namespace checker {

/// Whether the file holds the original code of the step; comments and layout make no difference.
/// source: what the file is made from, one of the chapter's.
bool is_given_code(const Course& course, const Source& source, const Step& step,
                   const std::string& text);

/// The step's TODOs at whose places the file holds the original code. It says nothing of code
/// elsewhere: only what the program does tells whether such a TODO was begun there.
std::set<int> untouched_todos(const Course& course, const Source& source, const Step& step,
                              const std::string& text);

/// TODOs at whose places code is only added, right beside the place of another one, where the code
/// is not the given one: what is new there may belong to either.
std::set<int> doubtful_todos(const Course& course, const Source& source, const Step& step,
                             const std::string& text);

/// The TODO of the step in whose place that line of the file lies; 0: in none, or nobody knows in
/// whose. line: its number, from 1.
int todo_at(const Course& course, const Source& source, const Step& step, const std::string& text,
            int line);

}  // namespace checker
