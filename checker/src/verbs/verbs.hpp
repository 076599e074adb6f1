#pragma once
/// What the checker can do: one function per verb, and the table of them.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/project.hpp"

namespace checker {

using Arguments = std::vector<std::string>;

/// Each takes what follows the verb and returns the exit status. --help prints the verb's help.
/// They throw UsageError for a wrong command line and Error for what else the user can fix.
int run_start(const Project& project, const Arguments& arguments);
int run_watch(const Project& project, const Arguments& arguments);
int run_check(const Project& project, const Arguments& arguments);
int run_hint(const Project& project, const Arguments& arguments);
int run_quiz(const Project& project, const Arguments& arguments);
int run_challenge(const Project& project, const Arguments& arguments);
int run_slides(const Project& project, const Arguments& arguments);
int run_diff(const Project& project, const Arguments& arguments);
int run_reset(const Project& project, const Arguments& arguments);
int run_upgrade(const Project& project, const Arguments& arguments);
int run_list(const Project& project, const Arguments& arguments);
int run_progress(const Project& project, const Arguments& arguments);
int run_step(const Project& project, const Arguments& arguments);
int run_monitor(const Project& project, const Arguments& arguments);
int run_pack(const Project& project, const Arguments& arguments);
int run_data(const Project& project, const Arguments& arguments);
int run_submit(const Project& project, const Arguments& arguments);
int run_site(const Project& project, const Arguments& arguments);
int run_doctor(const Project& project, const Arguments& arguments);
int run_lab(const Project& project, const Arguments& arguments);
int run_test(const Project& project, const Arguments& arguments);
int run_grade(const Project& project, const Arguments& arguments);
int run_verify(const Project& project, const Arguments& arguments);
int run_endure(const Project& project, const Arguments& arguments);
int run_golden(const Project& project, const Arguments& arguments);
int run_bench(const Project& project, const Arguments& arguments);
int run_render(const Project& project, const Arguments& arguments);
// What job scripts start in the job that gets a signal.
int run_stand_in(const Project& project, const Arguments& arguments);
// grade starts these.
int run_judge_hand_in(const Project& project, const Arguments& arguments);
int run_jobs(const Project& project, const Arguments& arguments);
int run_unpack_hand_in(const Project& project, const Arguments& arguments);

struct Verb {
  std::string_view name;
  std::string_view summary;  ///< none: not in the help
  int (*run)(const Project&, const Arguments&);
};

/// In the order of the help.
std::span<const Verb> verbs();

/// Runs what a command line asks for and reports errors on standard error. Returns the exit status.
int dispatch(const Arguments& command_line);

}  // namespace checker
