#include <algorithm>
#include <filesystem>

#include "bench/study.hpp"
#include "course/programs.hpp"
#include "course/render.hpp"
#include "monitor/figures.hpp"
#include "process/build.hpp"
#include "process/gpus.hpp"
#include "process/task_module.hpp"
#include "process/trainer.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/bench.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace {

namespace fs = std::filesystem;
using bench::StudyBase;
using bench::StudyPlan;
using bench::Trial;
using bench::TrialResult;
using bench::TrialRun;

constexpr const char* kScalesItsRate = "SCALED_RATE";

// No further run is wanted.
class Interrupted : public Error {
 public:
  using Error::Error;
};

struct Study {
  fs::path program;
  std::string task;
  StudyBase base;
  StudyPlan plan;
  Arguments passed_on;
  fs::path runs;  ///< each run's result, in a file of its own
};

cxxopts::Options options_of_study() {
  cxxopts::Options options(
      "./workbook bench scaling",
      "Studies the batch size: compares the loss after the same number of samples, "
      "for larger and larger batches.\n");
  options.add_options()("task", "The task that step 09's trainer trains",
                        cxxopts::value<std::string>()->default_value("signals"),
                        "NAME")("config", "Configuration (default: laptop; weather on GPUs: bs16)",
                                cxxopts::value<std::string>(), "NAME")(
      "ranks", "Largest number of ranks (default: all GPUs, or 4 on CPUs)",
      cxxopts::value<size_t>(),
      "N")("largest", "Largest batch, as a multiple of the smallest (default: 4, on GPUs 64)",
           cxxopts::value<size_t>(), "N")(
      "samples", "Samples that each run sees at least (default: 65536 on GPUs, else 19200)",
      cxxopts::value<int64_t>(), "N")("seeds", "Number of runs for each batch size and rate",
                                      cxxopts::value<size_t>()->default_value("3"), "N")(
      "output", "Write the table and the plot into this folder",
      cxxopts::value<std::string>()->default_value("output/scaling"),
      "DIR")("resume", "Keep the runs of a study that was stopped: those in the output folder")(
      "no-build", "Build nothing");
  return options;
}

StudyPlan plan_of(const cxxopts::ParseResult& parsed, size_t gpus) {
  StudyPlan plan{.most_ranks = gpus > 0 ? gpus : 4,
                 .largest = gpus > 0 ? 64U : 4U,
                 .samples = gpus > 0 ? 65536 : 19200,
                 .seeds = parsed["seeds"].as<size_t>()};
  if (parsed.count("ranks")) plan.most_ranks = parsed["ranks"].as<size_t>();
  if (parsed.count("largest")) plan.largest = parsed["largest"].as<size_t>();
  if (parsed.count("samples")) plan.samples = parsed["samples"].as<int64_t>();
  if (plan.most_ranks < 1 || plan.most_ranks > 64) {
    throw UsageError("--ranks must be between 1 and 64.");
  }
  if (gpus > 0 && plan.most_ranks > gpus) {
    throw UsageError("--ranks is larger than the " + count_of(gpus, "GPU") + " here.");
  }
  if (plan.largest < 1 || plan.largest > 1024 || (plan.largest & (plan.largest - 1)) != 0) {
    throw UsageError("--largest must be a power of two from 1 to 1024.");
  }
  if (plan.samples < 1 || plan.samples > 1'000'000'000) {
    throw UsageError("--samples must be between 1 and 1000000000.");
  }
  if (plan.seeds < 1 || plan.seeds > 100) throw UsageError("--seeds must be between 1 and 100.");
  return plan;
}

std::vector<std::string> names_of(const fs::path& folder, bool (*wanted)(const fs::path&)) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (wanted(entry.path())) names.push_back(entry.path().stem());
  }
  std::ranges::sort(names);
  return names;
}

// Throws UsageError for a task or a configuration that there is not, and names those that there
// are.
StudyBase base_of(const Project& project, const std::string& task, const std::string& config) {
  const auto tasks = project.source / "tasks", folder = tasks / task / "configs";
  if (!fs::is_directory(folder)) {
    const auto known =
        names_of(tasks, [](const fs::path& path) { return fs::is_directory(path / "configs"); });
    throw UsageError("--task: unknown task " + task + ". Fix: one of " + join(known, ", ") + ".");
  }
  if (!fs::exists(folder / (config + ".yaml"))) {
    const auto known =
        names_of(folder, [](const fs::path& path) { return path.extension() == ".yaml"; });
    throw UsageError("--config: " + task + " has no configuration " + config + ". Fix: one of " +
                     join(known, ", ") + ".");
  }
  return bench::read_study_base(folder, config);
}

// The loss of the last validation, and the time that rank 0 spent in training steps.
TrialRun read_run(const fs::path& output, const Trial& trial) {
  const auto run = monitor::load_run(output);
  const auto figures = monitor::figures_of(run);
  if (figures.steps != static_cast<size_t>(trial.steps)) {
    throw Error("it took " + count_of(figures.steps, "step") + " instead of " +
                std::to_string(trial.steps));
  }
  TrialRun found;
  bool any = false;
  for (const auto& evaluation : figures.evaluations) {
    if (evaluation.split != "validation") continue;
    found.loss = evaluation.loss;
    any = true;
  }
  if (!any) throw Error("it evaluated nothing");
  for (const auto& step : run.ranks.front().steps) found.seconds += step.duration();
  return found;
}

TrialRun train(const Study& study, const Trial& trial, size_t seed) {
  const TemporaryFolder folder;
  const auto config = folder.path() / "config.yaml", output = folder.path() / "output";
  write_file(config, bench::config_of(trial, study.base));
  TrainerRun run{.program = study.program,
                 .world_size = trial.ranks,
                 .arguments = {"--task", study.task, "--config", config.string(), "--output",
                               output.string(), "--seed", std::to_string(seed), "--monitor"},
                 .store = folder.path() / "store"};
  run.arguments.insert(run.arguments.end(), study.passed_on.begin(), study.passed_on.end());
  std::string last;
  const auto result =
      run_ranks(rank_commands(run), {.on_line = [&](size_t, bool is_error, auto line) {
                  if (is_error && !trim(line).empty()) last = line;
                  return true;
                }});
  if (result.interrupted_by != 0) throw Interrupted("The study was interrupted.");
  if (!result.success()) {
    throw Error(describe_failure(result) + (last.empty() ? "" : ": " + last));
  }
  return read_run(output, trial);
}

// Trains, unless an earlier study that is resumed has done so.
TrialRun run_once(const Study& study, const Trial& trial, size_t seed) {
  const auto identity = study.task + "\n" + bench::config_of(trial, study.base) + "\n" +
                        std::to_string(trial.ranks) + "\n" + std::to_string(seed) + "\n" +
                        join(study.passed_on, "\n");
  const auto file = study.runs / (fingerprint(identity) + ".json");
  if (fs::exists(file)) return bench::read_trial_run(file);
  const auto run = train(study, trial, seed);
  bench::write_trial_run(file, run);
  return run;
}

TrialResult run_trial(const Study& study, const Trial& trial) {
  TrialResult result{.what = trial};
  try {
    for (size_t seed = 0; seed < study.plan.seeds; ++seed) {
      result.runs.push_back(run_once(study, trial, seed));
    }
  } catch (const Interrupted&) {
    throw;
  } catch (const Error& error) {
    result.failure = error.what();
  }
  return result;
}

std::vector<TrialResult> run_all(const Study& study) {
  const auto trials = bench::study_trials(study.base, study.plan);
  std::vector<TrialResult> results;
  terminal::Stage stage("training " + count_of(trials.size(), "trial"));
  for (const auto& trial : trials) {
    stage.note("[" + std::to_string(results.size() + 1) + "/" + std::to_string(trials.size()) +
               "]");
    results.push_back(run_trial(study, trial));
  }
  stage.done();
  return results;
}

void write_report(const Study& study, const std::vector<TrialResult>& results,
                  const fs::path& folder) {
  const auto samples = results.front().what.steps * results.front().what.samples_a_step();
  std::string page = "# Batch sizes\n\nThe task " + study.task + ", configuration " +
                     study.base.name + ", " + std::to_string(samples) + " samples in each run, " +
                     count_of(study.plan.seeds, "run") + " of each.\n\n";
  for (const auto& line : bench::study_table(results, /*markdown=*/true)) page += line + "\n";
  page += "\n![Loss after the same number of samples](batches.svg)\n";
  write_file(folder / "scaling.md", page);
  write_file(folder / "batches.svg", bench::study_plot(results));
}

// Prints it and writes it; the exit status.
int report(const Study& study, const std::vector<TrialResult>& results, const fs::path& folder) {
  for (const auto& line : bench::study_table(results, /*markdown=*/false)) {
    terminal::say("  " + line);
  }
  bool all = true;
  for (const auto& result : results) {
    if (result.failure.empty()) continue;
    terminal::complain(std::to_string(result.what.samples_a_step()) +
                       " samples a step: " + result.failure);
    all = false;
  }
  write_report(study, results, folder);
  terminal::say("  table and plot: " + (folder / "scaling.md").string());
  return all ? 0 : 1;
}

}  // namespace

int run_batch_size_study(const Project& project, const Arguments& arguments) {
  const auto split = split_at_dashes(arguments);
  const auto parsed =
      parse(options_of_study(), "[--task NAME] [--ranks N] [--seeds N] [-- trainer options]",
            "Each batch size trains twice: with the learning rate scaled by the square root of the "
            "batch,\nas in TODO 25, and with the rate of the smallest batch. Seconds count "
            "training steps only.",
            split.own);
  if (!parsed) return 0;
  const size_t gpus = cached(project, "WORLDSIZE_CUDA") == "ON" ? gpus_here() : 0;
  const auto task = (*parsed)["task"].as<std::string>();
  const auto config = parsed->count("config")         ? (*parsed)["config"].as<std::string>()
                      : gpus > 0 && task == "weather" ? "bs16"
                                                      : "laptop";
  const auto course = load_course(project.chapters());
  const auto program = find_program(project, first_step_with(course, kScalesItsRate), true);
  const Study study{.program = program.file,
                    .task = task,
                    .base = base_of(project, task, config),
                    .plan = plan_of(*parsed, gpus),
                    .passed_on = split.passed_on,
                    .runs = fs::path((*parsed)["output"].as<std::string>()) / "runs"};
  if (!parsed->count("resume")) fs::remove_all(study.runs);
  if (!parsed->count("no-build")) {
    auto targets = targets_of_task(project, task);
    targets.insert(targets.begin(), program.target);
    build_targets(project, targets, "building " + join(targets, " and "));
  }
  return report(study, run_all(study), (*parsed)["output"].as<std::string>());
}

}  // namespace checker
