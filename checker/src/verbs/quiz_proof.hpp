#pragma once
/// Proves the answer to a question of the quiz: by running.
#include <string>
#include <vector>

#include "course/quiz.hpp"
#include "judge/judging.hpp"
#include "support/project.hpp"

namespace checker {

/// Runs or judges what proves the answer and shows it. Returns the lines that it showed. Throws
/// Error if it cannot be built or run.
std::vector<std::string> show_proof(const Project& project, const Course& course,
                                    const Proof& proof);

/// How many of the lines are what the proof must show, and whether that is as it says.
bool proves(const Proof& proof, const std::vector<std::string>& shown);

/// Judges a text as the program of a step, builds it before, and shows what is said of it.
std::vector<std::string> show_verdict(const Project& project, const Course& course,
                                      const Step& step, const std::string& text);

}  // namespace checker
