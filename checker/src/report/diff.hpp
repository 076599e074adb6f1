#pragma once
/// What differs between a student's file and the solution, comments and layout apart.
#include <string>
#include <string_view>
#include <vector>

#include "report/look.hpp"

namespace checker {

/// Lines as in a unified diff: " " the same in both, "-" only in `mine`, "+" only in `theirs`, each
/// place headed by "@@ line 12 @@", its line in `mine`. Comments and empty lines make no
/// difference: mine stand where they stand, so that a TODO's comment shows which place it is;
/// theirs are left out. Empty if nothing else differs. comment: what begins a comment, "//" or "#".
std::vector<std::string> code_diff(std::string_view mine, std::string_view theirs,
                                   std::string_view comment);

/// The same with colours.
std::vector<std::string> styled_diff(std::vector<std::string> diff, const Look& look);

}  // namespace checker
