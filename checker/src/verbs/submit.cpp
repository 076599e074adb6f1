#include <poll.h>

#include <array>
#include <chrono>

#include "course/programs.hpp"
#include "jobs/follow.hpp"
#include "process/build.hpp"
#include "process/capture.hpp"
#include "process/signals.hpp"
#include "process/task_module.hpp"
#include "site/site.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

constexpr auto kPatience = 60s;  // with a Slurm that does not answer, as busy ones do at times

// The job script to submit, from the project's folder.
fs::path job_script(const Course& course, const Step& step, bool solution) {
  const auto* job = course.job_of(step);
  if (!job) throw UsageError("Step " + step.label() + " has no job script.");
  if (solution && !course.edits_job(step)) {
    throw UsageError("Step " + step.label() +
                     " has no TODO in its job script, so there is no solution.");
  }
  return course.path_of(step, *job, solution);
}

std::string submit(const Project& project, const fs::path& script, const Arguments& to_sbatch,
                   const Arguments& to_trainer) {
  const auto file = project.source / "sbatch" / "site.conf";
  Command sbatch{{"sbatch", "--parsable"},
                 site_variables(parse_site(read_file(file), project.shown(file))),
                 project.source};
  auto& words = sbatch.arguments;
  words.insert(words.end(), to_sbatch.begin(), to_sbatch.end());
  words.push_back(script.string());
  words.insert(words.end(), to_trainer.begin(), to_trainer.end());
  Captured answer;
  try {
    answer = capture(sbatch);
  } catch (const Error&) {
    throw Error(
        "Cannot find sbatch, so there is no Slurm here. Fix: run this on a cluster's login node, "
        "or start a Slurm of your own: ./workbook lab up, then ./workbook lab shell.");
  }
  const auto lines = split_lines(answer.output);
  if (!answer.success() || lines.empty()) {
    throw Error("Slurm rejected the job: " + std::string(trim(answer.output)));
  }
  return lines.back().substr(0, lines.back().find(';'));  // "123;cluster"
}

// False: somebody does not want to wait any longer.
bool wait(std::chrono::milliseconds time) {
  const SignalWatch signals;
  pollfd watched{signals.descriptor(), POLLIN, 0};
  return ::poll(&watched, 1, static_cast<int>(time.count())) == 0;
}

int follow(const std::string& job) {
  JobFollower follower(
      [](std::string_view news) {
        terminal::say("  " + terminal::styled(terminal::Style::bold, news));
      },
      [](std::string_view line) { terminal::say(line); });
  auto last_answer = std::chrono::steady_clock::now();
  while (true) {
    const auto shown = capture({{"scontrol", "show", "job", job}, {}, {}});
    if (shown.success()) {
      last_answer = std::chrono::steady_clock::now();
      const auto record = parse_job_record(shown.output);
      follower.look(record);
      if (record.is_over()) return record.state == "COMPLETED" ? 0 : 1;
    } else if (std::chrono::steady_clock::now() - last_answer > kPatience) {
      throw Error("Slurm no longer knows job " + job + ": " + std::string(trim(shown.output)) +
                  " Fix: sacct -j " + job);
    }
    if (shown.interrupted_by != 0 || !wait(1s)) {
      terminal::say("  the job keeps running; to end it: scancel " + job);
      return 0;
    }
  }
}

}  // namespace

int run_submit(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook submit",
                           "Submits a step's job script and follows the job.\n");
  options.add_options()("solution", "Submit the reference instead of your script")(
      "no-build", "Do not build the program first")("no-follow", "Only submit")(
      "sbatch", "Options for sbatch, which override the script's",
      cxxopts::value<std::vector<std::string>>(), "OPTION,...");
  options.add_options("hidden")("step", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"step"});
  const auto split = split_at_dashes(arguments);
  const auto parsed = parse(options, "NN [--solution] [--sbatch OPTION,...] [-- trainer options]",
                            "It passes the settings of sbatch/site.conf (account, partition, ...) "
                            "to sbatch.\nCtrl-C stops the output, not the job.",
                            split.own);
  if (!parsed) return 0;
  if (!parsed->count("step")) throw UsageError("Which step? For example: ./workbook submit 07.");

  const auto course = load_course(project.chapters());
  const auto& step = named_step(course, (*parsed)["step"].as<std::vector<std::string>>());
  const bool solution = parsed->count("solution") > 0;
  const auto script = job_script(course, step, solution);
  if (!parsed->count("no-build")) {
    auto targets = targets_of_task(project, split.passed_on);
    targets.insert(targets.begin(), find_program(project, step, solution).target);
    build_targets(project, targets, "building " + join(targets, " and "));
  }
  const auto to_sbatch =
      parsed->count("sbatch") ? (*parsed)["sbatch"].as<Arguments>() : Arguments{};
  const auto job = submit(project, script, to_sbatch, split.passed_on);
  terminal::say("  job " + job + ": " + script.string());
  return parsed->count("no-follow") ? 0 : follow(job);
}

}  // namespace checker
