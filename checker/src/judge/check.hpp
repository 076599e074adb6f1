#pragma once
/// Judges one step: build it, run it at several worlds, look at what it did.
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "box/box.hpp"
#include "course/course.hpp"
#include "judge/verdict.hpp"
#include "process/fork_server.hpp"
#include "support/project.hpp"

namespace checker {

constexpr const char* kHandedInProgram = "train";

/// What somebody handed in for one step, instead of the project's files.
struct HandIn {
  std::map<std::string, std::string> files;  ///< texts by the names of the chapter's files
  std::filesystem::path folder;  ///< where the program's files lie, and the program gets built
  /// Builds the program there, kHandedInProgram; returns the compiler's first error, if there is
  /// one.
  std::function<std::optional<CompileError>()> build;
};

/// Of a step's plans, where a verdict counts: when a class is graded, and when the judge is tried.
constexpr size_t kPlans = 3;

struct CheckOptions {
  bool solution = false;         ///< judge the reference
  std::string device = "cpu";    ///< "cpu" over Gloo, "cuda" over NCCL
  std::vector<int> worlds = {};  ///< their sizes; empty: those of the chapter
  std::string task;              ///< to be judged with; empty: the chapter's
  size_t plans = 1;     ///< of the step's plans so many are tried, until one shows a mistake
  uint64_t seed = 0;    ///< of the data; 0: another one each time (verify: added to each name)
  bool build = true;    ///< false: judge what was built before
  std::string program;  ///< judge this program instead of a step's target; implies !build
  /// The text beside that program is a student's: where it is the given one, TODOs are open.
  bool student = false;
  /// Judge this job script, run with the program, and not the program itself.
  std::string job_script;
  const HandIn* hand_in = nullptr;
  const Box* box = nullptr;        ///< where programs are shut in that nobody trusts, if they are
  ForkServers* servers = nullptr;  ///< of programs that can serve: saves loading them; may be null
  std::string keep;                ///< a folder to leave the evidence in; empty: nothing is left
  /// Told what is going on, for a progress line; may be empty.
  std::function<void(std::string_view)> on_stage = {};
};

/// Judges the program of one step. Throws Error where the checker itself cannot work (no compiler,
/// disk full); whatever the student's program does ends up in the report.
Report check_step(const Project& project, const Course& course, const Step& step,
                  const CheckOptions& options);

}  // namespace checker
