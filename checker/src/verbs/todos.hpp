#pragma once
/// How steps and TODOs are named on command lines, and how they stand.
#include "course/course.hpp"
#include "state/standing.hpp"
#include "verbs/verbs.hpp"

namespace checker {

/// The TODO that the words name: "TODO 5", "todo5", "TODO C4"; "5" and "c4" too if `plain`. Null if
/// they name no
/// TODO. Throws UsageError for a TODO that the course lacks.
const Todo* named_todo(const Course& course, const Arguments& words, bool plain);

/// The step that the words name: "3", "03", "03_sampler", or the one that holds "TODO 5". Throws
/// UsageError.
const Step& named_step(const Course& course, const Arguments& words);

/// The steps of the chapter that the words name, in order; none if they name no chapter.
std::vector<const Step*> steps_of_named_chapter(const Course& course, const Arguments& words);

/// How all TODOs stand now. Says what there is to say of the file that remembers it.
Standings present_standings(const Project& project, const Course& course);

}  // namespace checker
