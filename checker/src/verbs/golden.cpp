#include <algorithm>
#include <array>
#include <cstdio>

#include "course/programs.hpp"
#include "course/render.hpp"
#include "golden/compare.hpp"
#include "golden/other_commit.hpp"
#include "golden/runs.hpp"
#include "judge/run_context.hpp"
#include "process/build.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace {

namespace fs = std::filesystem;
using golden::AllLeft;
using golden::Comparison;
using golden::Entry;
using golden::Results;
using golden::Solution;

fs::path config_of(const Project& project) {
  return project.source / "checker" / "golden" / "config.yaml";
}

fs::path results_of(const Project& project) {
  return project.source / "checker" / "golden" / "results.yaml";
}

// The solutions that a checkout has.
std::vector<Solution> solutions_in(const Project& project, const Course& course) {
  std::vector<Solution> programs;
  for (const auto& step : course.steps) {
    if (step.kind == ProgramKind::trainer && fs::exists(project.source / "solutions" / step.name)) {
      const auto features = features_until(course, step, Rendering::solution);
      programs.push_back({find_program(project, step, /*solution=*/true),
                          features.contains(std::string(feature::save0))});
    }
  }
  return programs;
}

void build(const Project& project, const std::vector<Solution>& programs, const std::string& what,
           std::vector<std::string> targets = {}) {
  for (const auto& program : programs) targets.push_back(program.target);
  build_targets(project, targets, "building " + what);
}

AllLeft run(const std::vector<Solution>& programs, const fs::path& config,
            const std::string& what) {
  terminal::Stage stage("running " + what);
  const auto left = golden::run_solutions(programs, config, [&](size_t begun, size_t all) {
    stage.note("[" + std::to_string(begun) + "/" + std::to_string(all) + "]");
  });
  stage.done();
  return left;
}

Results run_recorded(const Project& project, const std::vector<Solution>& programs) {
  const auto left = run(programs, config_of(project), "the solutions");
  if (!golden::all_recorded(left)) {
    throw Error("Not every rank recorded " + std::to_string(golden::kSteps) +
                " steps and its losses, so there is nothing to compare.");
  }
  return golden::recorded_results(left);
}

// One calm line, or a line for each rank that differs; the exit status.
int say(const Comparison& comparison, size_t ranks, const std::string& fine,
        const std::string& wrong) {
  if (comparison.wrong.empty()) {
    terminal::say("  " + fine);
    return 0;
  }
  for (const auto& line : comparison.wrong) terminal::say("  " + line);
  terminal::complain(std::to_string(comparison.wrong.size()) + " of " + count_of(ranks, "rank") +
                     " " + wrong);
  return 1;
}

std::string short_number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2g", value);
  return text.data();
}

int compare_with_file(const Project& project, const golden::Key& key,
                      const std::vector<Solution>& programs) {
  const auto file = project.shown(results_of(project));
  const auto entries = golden::read_entries(results_of(project));
  const auto* entry = golden::most_like(entries, key);
  if (!entry) throw Error(file + " holds no results. Fix: ./workbook golden --update");
  const auto results = run_recorded(project, programs);
  const std::string fix =
      " If this is on purpose: run ./workbook golden --update, in a commit that changes nothing "
      "else and says why. If not: ./workbook golden --against COMMIT finds where it began.";
  const auto all = count_of(results.size(), "rank");
  if (entry->key == key) {
    return say(golden::compare_bits(entry->results, results), results.size(),
               "All " + all + " have the bits in " + file + ".",
               "differ from " + file + ", which holds this machine's results." + fix);
  }
  terminal::say("  " + file + " holds no results of a machine like this one: " +
                golden::difference(key, entry->key) + ".");
  terminal::say("  So it compared losses only, because bits differ between such machines.");
  const auto comparison = golden::compare_losses(entry->results, results);
  const auto tolerance = short_number(golden::kLossTolerance);
  return say(comparison, results.size(),
             "All " + all + " report those losses within " + tolerance +
                 "; the largest difference is " + short_number(comparison.largest) + ".",
             "report losses further than " + tolerance + " from those." + fix);
}

int update(const Project& project, const golden::Key& key, const std::vector<Solution>& programs) {
  const auto entries = golden::read_entries(results_of(project));
  const auto results = run_recorded(project, programs);
  const auto update = golden::updated(entries, Entry{key, results});
  write_file(results_of(project), golden::text_of(update.entries));
  terminal::say("  " + project.shown(results_of(project)) + " holds what " +
                count_of(results.size(), "rank") + " computed here.");
  if (update.dropped > 0) {
    terminal::say(
        "  Results of " + count_of(update.dropped, "other machine") +
        " belonged to older programs and were removed. Run ./workbook golden --update there.");
  }
  return 0;
}

// Only solutions that both checkouts have can be compared.
void keep_common(std::vector<Solution>& ours, std::vector<Solution>& theirs) {
  const auto lacks = [](const std::vector<Solution>& all) {
    return [&all](const Solution& program) {
      return std::ranges::find(all, program.target, &Solution::target) == all.end();
    };
  };
  const auto removed = std::erase_if(ours, lacks(theirs));
  std::erase_if(theirs, lacks(ours));
  if (ours.empty()) throw Error("That commit has none of the solutions.");
  if (removed > 0) {
    terminal::say("  " + count_of(removed, "solution") + " did not exist there: not compared.");
  }
}

int compare_with_commit(const Project& project, const Course& course, const std::string& commit) {
  const golden::OtherCommit other(project, commit);
  auto ours = solutions_in(project, course), theirs = solutions_in(other.project(), course);
  keep_common(ours, theirs);
  build(other.project(), theirs, other.name());
  const auto before = run(theirs, config_of(project), other.name());
  const auto now = run(ours, config_of(project), "this checkout");
  const auto wrong = "differ from " + other.name() + ".";
  const auto all = "All " + count_of(now.size(), "rank");
  if (golden::all_recorded(before) && golden::all_recorded(now)) {
    return say(
        golden::compare_bits(golden::recorded_results(before), golden::recorded_results(now)),
        now.size(), all + " have the bits of " + other.name() + ".", wrong);
  }
  terminal::say(
      "  The two record differently, so it compared printed losses and saved parameters.");
  return say(golden::compare_bits(golden::printed_results(before), golden::printed_results(now)),
             now.size(), all + " print and save what they do in " + other.name() + ".", wrong);
}

}  // namespace

int run_golden(const Project& project, const Arguments& arguments) {
  cxxopts::Options options(
      "./workbook golden",
      "Checks that the solutions still compute the same losses and final parameters.\n");
  options.add_options()("update", "Save this machine's results in the file")(
      "against", "Build this commit too, and compare with its bits instead of the file",
      cxxopts::value<std::string>(), "COMMIT")("no-build", "Do not build first");
  const auto parsed = parse(
      options, "[--update | --against COMMIT]",
      "Each solution runs 20 steps in fp32 and in fp64, on one rank and on two, with one\nthread "
      "each. The file is checker/golden/results.yaml. With the same torch, glibc and CPU\nas in "
      "the file, every bit must agree. Elsewhere losses must agree within 1e-6.",
      arguments);
  if (!parsed) return 0;
  if (parsed->count("update") && parsed->count("against")) {
    throw UsageError("Use either --update or --against, not both.");
  }
  const auto course = load_course(project.chapters());
  const auto programs = solutions_in(project, course);
  if (!parsed->count("no-build")) build(project, programs, "the solutions", {"replay"});
  if (parsed->count("against")) {
    return compare_with_commit(project, course, (*parsed)["against"].as<std::string>());
  }
  const auto key = golden::key_here(project);
  return parsed->count("update") ? update(project, key, programs)
                                 : compare_with_file(project, key, programs);
}

}  // namespace checker
