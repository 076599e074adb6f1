#pragma once
/// How steps and TODOs are named on command lines, and how they stand.
#include "course/course.hpp"
#include "state/standing.hpp"
#include "verbs/verbs.hpp"

namespace checker {

/// What words name: a TODO and its step, or a step alone.
struct Named {
  const Step* step = nullptr;
  const Todo* todo = nullptr;  ///< null: only the step was named
};

/// What a number alone means. "TODO 5", "todo5" and "TODO C4" are a TODO in either case; "step 5",
/// "05" and "03_sampler" a step; "c4" is both.
enum class Bare { step, todo };

/// Whether these words name one thing together, as "TODO 5" does, rather than one each.
bool is_one_name(const Arguments& words);

/// Throws UsageError for what the course lacks.
Named named(const Course& course, const Arguments& words, Bare bare);

/// The step that the words name, or the one that holds the TODO that they name. A number alone is
/// a step. Throws UsageError.
const Step& named_step(const Course& course, const Arguments& words);
/// The TODO that the words name; of a step the first one that is to be worked on, else its first. A
/// number alone is a TODO. Throws UsageError, also for a step without TODOs.
const Todo& named_todo(const Course& course, const Arguments& words, const Standings& all);

/// The steps of the chapter that the words name, in order; none if they name no chapter.
std::vector<const Step*> steps_of_named_chapter(const Course& course, const Arguments& words);

/// How all TODOs stand now. Says what there is to say of the file that remembers it.
Standings present_standings(const Project& project, const Course& course);

}  // namespace checker
