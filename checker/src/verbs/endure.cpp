#include "endure/endure.hpp"

#include <algorithm>
#include <functional>

#include "course/programs.hpp"
#include "course/render.hpp"
#include "lab/impossible.hpp"
#include "process/build.hpp"
#include "process/gpus.hpp"
#include "support/error.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace {

using endure::Outcome;

constexpr size_t kRanks = 3;

// Runs one kind of trial; true if all came out right.
bool endured(const std::string& title, endure::Options& options,
             const std::function<Outcome()>& trials) {
  if (options.count == 0) return true;
  terminal::Stage stage(title);
  options.on_progress = [&](size_t done) {
    stage.note("[" + std::to_string(done) + "/" + std::to_string(options.count) + "]");
  };
  const auto outcome = trials();
  if (outcome.wrong.empty()) {
    stage.done();
  } else {
    stage.failed();
  }
  terminal::say("    " + std::to_string(outcome.right) + " of " + std::to_string(outcome.trials()) +
                " right" + (outcome.remark.empty() ? "" : "; " + outcome.remark));
  for (const auto& wrong : outcome.wrong) terminal::say("    " + wrong);
  return outcome.wrong.empty();
}

}  // namespace

int run_endure(const Project& project, const Arguments& arguments) {
  cxxopts::Options options(
      "./workbook endure",
      "Kills runs and damages checkpoints, and checks that training recovers.\n");
  options.add_options()("kills", "Number of runs to kill once and resume",
                        cxxopts::value<size_t>()->default_value("200"),
                        "N")("damages", "Number of checkpoints to damage and resume from",
                             cxxopts::value<size_t>()->default_value("1000"),
                             "N")("chaos", "Number of jobs in a lab to disturb",
                                  cxxopts::value<size_t>()->default_value("100"), "N")(
      "seed", "Seed for what happens when", cxxopts::value<uint64_t>()->default_value("1"), "N")(
      "device",
      "Device of the killed runs: cpu (three ranks over Gloo) or cuda (a rank per GPU over NCCL)",
      cxxopts::value<std::string>()->default_value("cpu"),
      "D")("program", "Kill and damage this trainer instead of step 07's solution",
           cxxopts::value<std::string>(), "FILE")("no-build", "Build nothing");
  const auto parsed = parse(
      options, "[--kills N] [--damages N] [--chaos N]",
      "It takes about an hour and a half on two cores. A number of 0 skips that part.", arguments);
  if (!parsed) return 0;
  const auto device = (*parsed)["device"].as<std::string>();
  if (device != "cpu" && device != "cuda") throw UsageError("--device must be cpu or cuda.");
  if (device == "cuda" && gpus_here() == 0) {
    throw Error("--device cuda: no usable GPU here. Fix: --device cpu");
  }
  const auto course = load_course(project.chapters());
  auto program = find_program(project, first_step_with(course, endure::kResumes), true);
  if (parsed->count("program")) {
    program.file = std::filesystem::absolute((*parsed)["program"].as<std::string>());
    if (!std::filesystem::exists(program.file)) {
      throw UsageError("--program: " + program.file.string() + " does not exist.");
    }
  } else if (!parsed->count("no-build")) {
    build_targets(project, {&program.target, 1}, "building " + program.target);
  }
  const auto with = [&](const char* name) {
    return endure::Options{.program = program.file,
                           .count = (*parsed)[name].as<size_t>(),
                           .seed = (*parsed)["seed"].as<uint64_t>(),
                           .device = device,
                           .ranks = device == "cpu" ? kRanks : std::min(kRanks, gpus_here())};
  };
  auto kills = with("kills"), damages = with("damages");
  endure::ChaosOptions chaos{
      .trials = with("chaos"), .course = project.chapters(), .venv = project.source / ".venv"};
  if (const auto why = lab_impossible(); why && chaos.trials.count > 0) {
    terminal::say("  no chaos: " + *why);
    chaos.trials.count = 0;
  }
  const bool killed = endured("killing ranks", kills, [&] { return endure::kill_ranks(kills); });
  const bool damaged =
      endured("damaging checkpoints", damages, [&] { return endure::damage_checkpoints(damages); });
  const bool survived =
      endured("disturbing jobs", chaos.trials, [&] { return endure::chaos_on_a_lab(chaos); });
  return killed && damaged && survived ? 0 : 1;
}

}  // namespace checker
