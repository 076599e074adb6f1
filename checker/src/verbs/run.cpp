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

namespace checker {

namespace {

// So that ./workbook monitor can show it afterwards. What the user says comes last and counts:
// --monitor=false.
Arguments monitored(const Arguments& given) {
  Arguments all{"--monitor"};
  all.insert(all.end(), given.begin(), given.end());
  return all;
}

}  // namespace

int run_step(const Project& project, const Arguments& arguments) {
  cxxopts::Options options("./workbook run",
                           "Builds one step and runs its ranks on this machine.\n");
  options.add_options()("solution", "Run the reference instead of your own program")(
      "no-build", "Build nothing, as on a compute node without a compiler")(
      "world", "Number of ranks", cxxopts::value<size_t>()->default_value("1"), "N");
  options.add_options("hidden")("step", "", cxxopts::value<std::string>());
  options.parse_positional({"step"});
  const auto split = split_at_dashes(arguments);
  const auto parsed = parse(options, "NN [--solution] [--world N] [-- trainer options]",
                            "What follows -- goes to the trainer; for its options say\n"
                            "./workbook run 01 -- --help\n"
                            "./workbook monitor NN shows the run; -- --monitor=false records none.",
                            split.own);
  if (!parsed) return 0;
  if (!parsed->count("step")) throw UsageError("Which step? For example: ./workbook run 02.");
  const auto world_size = (*parsed)["world"].as<size_t>();
  if (world_size < 1 || world_size > 64) throw UsageError("--world must lie between 1 and 64.");

  const auto course = load_course(project.chapters());
  const auto& step = course.step((*parsed)["step"].as<std::string>());
  const auto program = find_program(project, step, parsed->count("solution") > 0);
  if (!parsed->count("no-build")) {
    auto targets = targets_of_task(project, split.passed_on);
    targets.insert(targets.begin(), program.target);
    build_targets(project, targets, "building " + join(targets, " and "));
  } else if (!std::filesystem::exists(program.file)) {
    throw Error(project.shown(program.file) +
                " is not there. Mend: run it once without --no-build.");
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
  const auto result = run_ranks(rank_commands(run), ranks);
  // A single rank that ends by itself has said why.
  const bool said = world_size == 1 && result.first_failed && !result.ranks[0].exit.signal;
  if (!result.success() && !said) terminal::complain(describe_failure(result));
  return result.status();
}

}  // namespace checker
