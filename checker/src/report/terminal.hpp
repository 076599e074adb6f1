#pragma once
/// A report as a person reads it: lines for a terminal.
#include <optional>
#include <string>
#include <vector>

#include "course/course.hpp"
#include "judge/verdict.hpp"
#include "report/look.hpp"

namespace checker {

/// One line per TODO; under the first wrong one all about it, under later ones a sentence; and what
/// was not checked. If the program does not compile: the compiler's first error and nothing else.
std::vector<std::string> report_lines(const Report& report, const Course& course, const Look& look);

/// Everything about a finding, set in by so many blanks.
std::vector<std::string> finding_lines(const Finding& finding, size_t indent, const Look& look);

/// One TODO: its mark, number and title, and a note behind them or, if there is no room, beneath.
std::vector<std::string> todo_lines(const Todo& todo, State state, const std::string& note,
                                    const Look& look);

/// Where experiments stand, with what to look for.
constexpr const char* kExperiments = "steps/README.md";

/// What to do next: this TODO, its file, and how to get a hint. None: all are done. `program`: the
/// step in whose program it is to be fixed; else its own.
std::vector<std::string> next_lines(const Course& course, std::optional<int> todo, const Look& look,
                                    const Step* program = nullptr);

/// The TODO of this report that is to be worked on: the first wrong or open one.
std::optional<int> todo_to_fix(const Report& report);

}  // namespace checker
