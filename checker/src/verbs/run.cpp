#include <unistd.h>

#include <algorithm>

#include "console/terminal.hpp"
#include "course/programs.hpp"
#include "process/build.hpp"
#include "process/task_module.hpp"
#include "process/trainer.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/arguments.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

namespace {

// So that ./workbook monitor can show it afterwards. What the user says comes last and counts:
// --monitor=false.
Arguments monitored(const Arguments& given) {
  Arguments all{"--monitor"};
  all.insert(all.end(), given.begin(), given.end());
  return all;
}

// The command line as it was probably meant, where an option of the trainer stands among ours.
std::string with_dashes(const Arguments& own) {
  Arguments ours, trainers;
  for (size_t i = 0; i < own.size(); ++i) {
    const auto name = own[i].substr(0, own[i].find('='));
    const bool known = name == "--solution" || name == "--no-build" || name == "--world";
    if (known || (!own[i].starts_with("-") && trainers.empty())) {
      ours.push_back(own[i]);
      if (own[i] == "--world" && i + 1 < own.size()) ours.push_back(own[++i]);
    } else {
      trainers.push_back(own[i]);
    }
  }
  return "./workbook run " + join(ours, " ") + " -- " + join(trainers, " ");
}

std::optional<cxxopts::ParseResult> parse_run(const cxxopts::Options& options,
                                              const Arguments& own) try {
  return parse(
      options, "NN [--solution] [--world N] [-- trainer options]",
      "Everything after -- goes to the trainer. Its options: ./workbook run 01 -- "
      "--help\n./workbook monitor NN shows the run. -- --monitor=false turns recording off.",
      own);
} catch (const UsageError& error) {
  const std::string what = error.what();
  if (what.find("does not exist") == what.npos) throw;
  throw UsageError(what + " Put options of the trainer after --: " + with_dashes(own) + ".");
}

}  // namespace

int run_step(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook run",
                           "Builds one step and runs its ranks on this machine.\n");
  options.add_options()("solution", "Run the reference instead of your own program")(
      "no-build", "Do not build, for example on a compute node without a compiler")(
      "world", "Number of ranks", cxxopts::value<size_t>()->default_value("1"), "N");
  options.add_options("hidden")("step", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"step"});
  const auto split = split_at_dashes(arguments);
  const auto parsed = parse_run(options, split.own);
  if (!parsed) return 0;
  if (!parsed->count("step")) throw UsageError("Which step? For example: ./workbook run 02.");
  const auto world_size = (*parsed)["world"].as<size_t>();
  if (world_size < 1 || world_size > 64) throw UsageError("--world must be between 1 and 64.");

  const auto course = load_course(project.chapters());
  const auto& step = named_step(course, (*parsed)["step"].as<std::vector<std::string>>());
  const auto program = find_program(project, step, parsed->count("solution") > 0);
  if (!parsed->count("no-build")) {
    auto targets = targets_of_task(project, split.passed_on);
    targets.insert(targets.begin(), program.target);
    build_targets(project, targets, "building " + join(targets, " and "));
  } else if (!std::filesystem::exists(program.file)) {
    throw Error(project.shown(program.file) +
                " does not exist. Fix: run it once without --no-build.");
  }

  const bool trains = step.kind == ProgramKind::trainer;
  const auto arguments_of_plain = split.passed_on.empty() ? step.arguments : split.passed_on;
  const TemporaryFolder meeting;
  const TrainerRun run{.program = program.file,
                       .world_size = world_size,
                       .arguments = trains ? with_output(monitored(split.passed_on), program.output)
                                           : arguments_of_plain,
                       .store = meeting.path() / "store"};
  RankOptions ranks;
  // A single rank gets the terminal itself, and draws its progress bar there.
  if (world_size == 1) ranks.wiring = {.pipe_output = false, .pipe_error = false};
  // Of several, the first one draws it, and what the others say comes line by line.
  ranks.first_draws = trains && world_size > 1 && console::can_draw(STDERR_FILENO);
  const auto result = run_ranks(rank_commands(run), ranks);
  // A single rank that ends by itself has said why.
  const bool said = world_size == 1 && result.first_failed && !result.ranks[0].exit.signal;
  if (!result.success() && !said) terminal::complain(describe_failure(result));
  return result.status();
}

}  // namespace checker
