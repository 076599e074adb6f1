#include "verbs/quiz_proof.hpp"

#include <algorithm>
#include <regex>

#include "course/programs.hpp"
#include "course/render.hpp"
#include "judge/build_cache.hpp"
#include "process/build.hpp"
#include "process/lines.hpp"
#include "process/task_module.hpp"
#include "process/trainer.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"

namespace checker {

namespace {

// The modules of the task that the options name, else of the chapter's own.
std::vector<std::string> task_targets(const Project& project, const Course& course,
                                      const Step& step, const std::vector<std::string>& options) {
  auto targets = targets_of_task(project, options);
  if (targets.empty()) targets = targets_of_task(project, course.chapter_of(step).task);
  return targets;
}

std::vector<std::string> show_run(const Project& project, const Course& course,
                                  const Proof& proof) {
  const auto& step = course.step(proof.step);
  const auto program = find_program(project, step, true);
  auto targets = task_targets(project, course, step, proof.options);
  targets.insert(targets.begin(), program.target);
  build_targets(project, targets, "building " + program.target);

  const TemporaryFolder folder;
  auto arguments = proof.options;
  if (!proof.config.empty()) {
    const auto config = folder.path() / "quiz.yaml";
    write_file(config, proof.config);
    arguments.insert(arguments.end(), {"--config", config.string()});
  }
  terminal::say("  ./workbook run " + step.label() + " --solution --world " +
                std::to_string(proof.world) + " -- " + join(proof.options, " ") +
                (proof.config.empty() ? "" : " --config FILE"));
  arguments.insert(arguments.end(), {"--output", (folder.path() / "output").string()});
  const TrainerRun run{.program = program.file,
                       .world_size = proof.world,
                       .arguments = arguments,
                       .store = folder.path() / "store"};
  std::vector<std::string> lines;
  RankOptions ranks;
  ranks.on_line = [&](size_t rank, bool, std::string_view line) {
    lines.push_back(rank_label(rank, proof.world, -1) + std::string(line));
    terminal::say("  " + printable(lines.back()));
    return true;
  };
  const auto result = run_ranks(rank_commands(run), ranks);
  if (result.interrupted_by) throw Error(describe_failure(result));
  return lines;
}

}  // namespace

std::vector<std::string> show_verdict(const Project& project, const Course& course,
                                      const Step& step, const std::string& text) {
  const auto& main = course.program_of(step);
  // Questions may be answered side by side, so each text has a folder of its own.
  CachedProgram program{.name = "quiz-" + fingerprint(text), .files = {{main.name, text}}};
  Report report;
  {
    terminal::Stage stage("judging it");
    stage.note("building");
    BuildCache(project, true, targets_of_task(project, course.chapter_of(step).task))
        .build({&program, 1});
    if (program.program.empty()) {
      stage.failed();
      throw Error("It does not compile: " + join(program.output, "\n"));
    }
    CheckOptions options;
    options.program = program.program.string();
    options.build = false;
    options.seed = 1;  // of an answer that is the same from one day to the next
    options.plans = kPlans;
    options.on_stage = [&](std::string_view what) { stage.note(what); };
    report = judge_of(project)(course, step, options);
    stage.done();
  }
  const auto look = present_look();
  std::vector<std::string> lines;
  if (const auto* finding = report.first_finding()) {
    lines = finding_lines(*finding, 2, look);
  } else {
    lines = {report.passed() ? "  Nothing is wrong with it." : "  It could not be checked."};
  }
  for (const auto& line : lines) terminal::say(line);
  return lines;
}

std::vector<std::string> show_proof(const Project& project, const Course& course,
                                    const Proof& proof) {
  if (!proof.judged) return show_run(project, course, proof);
  const auto& step = course.step(proof.step);
  return show_verdict(project, course, step,
                      render(course, course.program_of(step), step, Rendering::step));
}

bool proves(const Proof& proof, const std::vector<std::string>& shown) {
  const std::regex wanted(proof.shows);
  const auto found = static_cast<size_t>(std::ranges::count_if(
      shown, [&](const std::string& line) { return std::regex_search(line, wanted); }));
  return proof.times == 0 ? found > 0 : found == proof.times;
}

}  // namespace checker
