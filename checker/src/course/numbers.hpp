#pragma once
/// The numbers of TODOs. A step's TODOs count from 1 through the course. An exercise beside the
/// steps holds one TODO, and both are called after the chapter's letter: C4. As an int that is
/// 3004, so that exercises come behind all steps, letter by letter.
#include <optional>
#include <string>
#include <string_view>

namespace checker {

/// Whether it is the TODO of an exercise beside the steps.
bool is_exercise(int todo);
/// Whether both are of the steps, or of exercises with the same letter.
bool same_series(int todo, int other);

/// "5", "C4"
std::string label_of_todo(int todo);
/// "TODO 5", "TODO C4"
std::string name_of_todo(int todo);
/// The number that a label means: "5", "05", "C4", "c4"; nothing for what is none.
std::optional<int> todo_labelled(std::string_view label);

}  // namespace checker
