#pragma once
/// Makes the files of all steps from the ladder.
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "ladder/ladder.hpp"

namespace checker {

enum class Rendering { step, solution };

/// The features that are on in the step as given, or solved.
std::set<std::string> features_until(const Ladder& ladder, const Step& step, Rendering which);

/// A line of a source with the step's name and program in their places.
std::string substituted(std::string line, const Step& step, Rendering which);

/// The step's file made from `source` (the ladder's trainer or job): as a student finds it, with
/// the full texts of this step's TODOs, or solved, with one line in place of each.
std::string render(const Ladder& ladder, const Source& source, const Step& step, Rendering which);

/// Everything that is rendered: paths from the project's folder, and texts.
std::map<std::filesystem::path, std::string> render_all(const Ladder& ladder);

/// A rendered file without what differs between a step as given and the solution before it: the
/// header comment and the TODO comments. comment: what begins a comment, "//" or "#".
std::string strip_comments(std::string_view text, std::string_view comment);

/// Throws Error if some step as given is not the solution of the step before it, TODO and header
/// comments apart: the ladder's sources are wrong then.
void check_continuity(const Ladder& ladder);

}  // namespace checker
