#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>

#include "judge/catalogue_run.hpp"
#include "judge/job_check.hpp"
#include "judge/oracle.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace {

struct Row {
  size_t wrong = 0, rejected = 0, blamed = 0, right = 0, accepted = 0;

  void add(const SampleResult& result) {
    if (result.sample.wanted != Wanted::accepted) {
      ++wrong;
      rejected += result.as_wanted ? 1 : 0;
      blamed += result.blamed_rightly ? 1 : 0;
    } else {
      ++right;
      accepted += result.as_wanted ? 1 : 0;
    }
  }
};

std::string cell(size_t part, size_t whole) {
  const auto text = std::to_string(part) + "/" + std::to_string(whole);
  return std::string(text.size() < 10 ? 10 - text.size() : 0, ' ') + text;
}

void print_row(const std::string& name, const Row& row) {
  std::string line = "  " + name;
  line.resize(12, ' ');
  terminal::say(line + cell(row.rejected, row.wrong) + cell(row.blamed, row.wrong) +
                cell(row.accepted, row.right));
}

void print_matrix(const std::vector<SampleResult>& results) {
  std::map<int, Row> rows;
  Row all;
  for (const auto& result : results) {
    rows[result.sample.todo].add(result);
    all.add(result);
  }
  terminal::say("");
  terminal::say("              rejected    blamed  accepted");
  for (const auto& [todo, row] : rows)
    print_row(todo == 0 ? "the ladder" : "TODO " + std::to_string(todo), row);
  print_row("all", all);
}

// How far apart right and wrong are, which is what the tolerance rests on.
void print_deviations(const std::vector<SampleResult>& results) {
  double largest_right = 0, smallest_wrong = kUnknown;
  for (const auto& result : results) {
    if (!result.built) continue;
    if (result.sample.wanted == Wanted::accepted) {
      largest_right = std::max(largest_right, result.report.largest_deviation);
    } else if (const auto* first = result.report.first_finding(); first && first->deviation > 0) {
      smallest_wrong = std::min(smallest_wrong, first->deviation);
    }
  }
  std::array<char, 120> text{};
  std::snprintf(text.data(), text.size(), "Largest relative deviation of a right program: %.1e",
                largest_right);
  terminal::say(text.data());
  if (smallest_wrong >= kUnknown) return;
  std::snprintf(text.data(), text.size(), "Smallest of a wrong one that shows by numbers: %.1e",
                smallest_wrong);
  terminal::say(text.data());
}

// The samples that the options name.
std::vector<Sample> chosen_samples(const cxxopts::ParseResult& parsed,
                                   std::vector<Sample> samples) {
  if (parsed.count("quick")) {
    std::erase_if(samples, [](const Sample& sample) { return !sample.quick; });
  }
  if (parsed.count("trainers")) std::erase_if(samples, &Sample::job);
  if (parsed.count("jobs")) std::erase_if(samples, std::not_fn(&Sample::job));
  const auto keep = [](const auto& chosen, const auto& value) {
    return std::ranges::find(chosen, value) != chosen.end();
  };
  if (parsed.count("todo")) {
    const auto todos = parsed["todo"].as<std::vector<int>>();
    std::erase_if(samples, [&](const Sample& sample) { return !keep(todos, sample.todo); });
  }
  if (parsed.count("names")) {
    const auto names = parsed["names"].as<std::vector<std::string>>();
    std::erase_if(samples, [&](const Sample& sample) { return !keep(names, sample.name); });
  }
  if (samples.empty()) throw UsageError("No entry of the catalogue fits.");
  return samples;
}

}  // namespace

int run_verify(const Project& project, const Arguments& arguments) {
  cxxopts::Options options(
      "./workbook verify",
      "Judges the catalogue of wrong edits and variants: is the judge right?\n");
  options.add_options()("todo", "Only entries of this TODO; several may be given",
                        cxxopts::value<std::vector<int>>(), "N")(
      "quick", "Only the few that every test run judges: every TODO and every kind of finding")(
      "trainers", "Only trainers")("jobs", "Only job scripts, which need a Slurm to rehearse on")(
      "all", "Also list what is as it should be")(
      "print", "Judge nothing; print the trainers and job scripts that would be judged")(
      "catalogue", "Entries of one's own: a folder with wrong/NN.yaml and variants/NN.yaml",
      cxxopts::value<std::string>(), "DIR")("device", "cpu over Gloo, or cuda over NCCL",
                                            cxxopts::value<std::string>()->default_value("cpu"),
                                            "NAME")(
      "no-build", "Judge what was built before, as on a compute node without a compiler");
  options.add_options("hidden")("names", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"names"});
  const auto parsed = parse(options, "[NAME ...] [--todo N] [--quick] [--catalogue DIR]",
                            "All entries take about an hour on two cores.", arguments);
  if (!parsed) return 0;

  const auto ladder = load_ladder(project.ladder());
  const auto catalogue = parsed->count("catalogue")
                             ? std::filesystem::path((*parsed)["catalogue"].as<std::string>())
                             : project.ladder() / "catalogue";
  auto samples =
      chosen_samples(*parsed, catalogue_samples(ladder, load_catalogue(catalogue, ladder)));
  if (parsed->count("print")) {
    for (const auto& sample : samples) std::fputs(sample.text.c_str(), stdout);
    return 0;
  }
  const auto job_scripts = std::ranges::count_if(samples, &Sample::job);
  if (const auto why = job_check_impossible(project); why && job_scripts > 0) {
    terminal::say("Not tried, " + std::to_string(job_scripts) + " job scripts: " + *why);
    std::erase_if(samples, &Sample::job);
  }

  size_t number = 0;
  bool right = true;
  CheckOptions how;
  how.device = (*parsed)["device"].as<std::string>();
  how.build = parsed->count("no-build") == 0;
  const auto results =
      judge_samples(project, ladder, samples, how, [&](const SampleResult& result) {
        ++number;
        right = right && result.as_wanted && result.blamed_rightly;
        const bool fine = result.as_wanted && result.blamed_rightly;
        if (fine && parsed->count("all") == 0 && number % 10 != 0) return;
        terminal::say("  " + std::to_string(number) + "/" + std::to_string(samples.size()) +
                      "  TODO " + std::to_string(result.sample.todo) + "  " + result.sample.name +
                      (fine ? ": as it should be" : ": " + result.problem) +
                      (fine && !result.findings.empty() ? " (" + result.findings + ")" : ""));
        if (!fine && !result.sample.words.empty()) terminal::say("      " + result.sample.words);
      });
  print_matrix(results);
  print_deviations(results);
  return right ? 0 : 1;
}

}  // namespace checker
