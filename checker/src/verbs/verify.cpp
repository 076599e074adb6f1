#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>

#include "judge/catalogue_run.hpp"
#include "judge/job_check.hpp"
#include "judge/kept_results.hpp"
#include "judge/oracle.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/every_word.hpp"
#include "verbs/options.hpp"
#include "verbs/shard.hpp"

namespace checker {

namespace {

std::string cell(size_t part, size_t whole) {
  const auto text = std::to_string(part) + "/" + std::to_string(whole);
  return std::string(text.size() < 10 ? 10 - text.size() : 0, ' ') + text;
}

void print_row(const std::string& name, const Tally& row) {
  std::string line = "  " + name;
  line.resize(12, ' ');
  terminal::say(line + cell(row.rejected, row.wrong) + cell(row.blamed, row.wrong) +
                cell(row.accepted, row.right));
}

void print_matrix(const std::vector<KeptResult>& results) {
  std::map<int, Tally> rows;
  Tally all;
  for (const auto& result : results) {
    rows[result.todo].add(result);
    all.add(result);
  }
  terminal::say("");
  terminal::say("              rejected    blamed  accepted");
  for (const auto& [todo, row] : rows)
    print_row(todo == 0 ? "the course" : name_of_todo(todo), row);
  print_row("all", all);
}

// How far apart right and wrong are, which is what the tolerance rests on.
void print_deviations(const std::vector<KeptResult>& results) {
  double largest_right = 0, smallest_wrong = kUnknown;
  for (const auto& result : results) {
    if (result.wanted == "accepted") {
      largest_right = std::max(largest_right, result.deviation);
    } else if (result.deviation > 0) {
      smallest_wrong = std::min(smallest_wrong, result.deviation);
    }
  }
  std::array<char, 120> text{};
  std::snprintf(text.data(), text.size(), "Largest relative deviation of a right program: %.1e",
                largest_right);
  terminal::say(text.data());
  if (smallest_wrong >= kUnknown) return;
  std::snprintf(text.data(), text.size(),
                "Smallest deviation of a wrong program that numbers show: %.1e", smallest_wrong);
  terminal::say(text.data());
}

// Those of the course, or the user's own.
std::vector<Sample> all_samples(const cxxopts::ParseResult& parsed, const Course& course) {
  if (parsed.count("programs")) {
    return whole_samples(course, load_whole_programs(parsed["programs"].as<std::string>(), course));
  }
  if (parsed.count("catalogue")) {
    return catalogue_samples(course, load_catalogue(parsed["catalogue"].as<std::string>(), course));
  }
  auto samples = catalogue_samples(course, load_catalogue(course));
  for (auto& sample : whole_samples(course, load_whole_programs(course)))
    samples.push_back(std::move(sample));
  return samples;
}

std::vector<int> numbers_of(const std::vector<std::string>& labels) {
  std::vector<int> numbers;
  for (const auto& label : labels) {
    const auto number = todo_labelled(label);
    if (!number)
      throw UsageError("--todo " + label + ": a TODO is a number, or a name such as C4.");
    numbers.push_back(*number);
  }
  return numbers;
}

// The samples that the options name.
std::vector<Sample> chosen_samples(const cxxopts::ParseResult& parsed,
                                   std::vector<Sample> samples) {
  if (parsed.count("quick")) {
    std::erase_if(samples, [](const Sample& sample) { return !sample.quick; });
  }
  if (parsed.count("chapter")) {
    const auto chapter = parsed["chapter"].as<std::string>();
    std::erase_if(samples, [&](const Sample& sample) { return sample.step->chapter != chapter; });
  }
  if (parsed.count("trainers")) std::erase_if(samples, &Sample::job);
  if (parsed.count("jobs")) std::erase_if(samples, std::not_fn(&Sample::job));
  const auto keep = [](const auto& chosen, const auto& value) {
    return std::ranges::find(chosen, value) != chosen.end();
  };
  if (parsed.count("todo")) {
    const auto todos = numbers_of(parsed["todo"].as<std::vector<std::string>>());
    std::erase_if(samples, [&](const Sample& sample) { return !keep(todos, sample.todo); });
  }
  if (parsed.count("names")) {
    const auto names = parsed["names"].as<std::vector<std::string>>();
    std::erase_if(samples, [&](const Sample& sample) { return !keep(names, sample.name); });
  }
  if (samples.empty()) throw UsageError("No entry of the catalogue matches.");
  return samples;
}

// The file in which its TODO is done; all of them, if it is about none.
std::string edited_text(const Course& course, const Sample& sample) {
  if (sample.todo == 0) return sample.text();
  const auto& file = course.source_of(course.todos.at(sample.todo)).name;
  const auto found = std::ranges::find(sample.files, file, &NamedText::name);
  return found == sample.files.end() ? sample.text() : found->text;
}

cxxopts::Options verify_command() {
  cxxopts::Options options("./workbook verify",
                           "Tests the checker on its catalogue of wrong edits and variants.\n");
  const auto text = [] { return cxxopts::value<std::string>(); };
  options.add_options()("todo", "Only entries of this TODO; repeat it for several",
                        cxxopts::value<std::vector<std::string>>(), "N");
  options.add_options()(
      "quick", "Only the few that every test run takes: every TODO, every finding of trainers");
  options.add_options()("chapter", "Only this chapter; one for tests as well", text(), "NAME");
  options.add_options()("trainers", "Only trainers");
  options.add_options()("jobs", "Only job scripts, which need Slurm on this machine");
  options.add_options()("again",
                        "Also judge entries that have not changed since their last verdict");
  options.add_options()("seed", "Seed for the data that programs train on",
                        cxxopts::value<uint64_t>()->default_value("0"), "N");
  options.add_options()("task",
                        "Judge trainers on another task, or on several; results are not kept",
                        cxxopts::value<std::vector<std::string>>()->default_value(""), "NAME,...");
  options.add_options()(
      "plans",
      "Try this many plans of a step, until one shows a mistake (default: 3, with --quick 1)",
      cxxopts::value<size_t>(), "N");
  options.add_options()("shard", "Only the I-th of N parts", text(), "I/N");
  options.add_options()("record", "Write the results into the catalogue's results.tsv");
  options.add_options()("words", "Write every word of every finding into a file", text(), "FILE");
  options.add_options()("all", "Also list the entries that are judged right");
  options.add_options()("print", "Print the trainers and job scripts, and judge nothing");
  options.add_options()("catalogue",
                        "Entries of your own: a folder with wrong/NN.yaml and variants/NN.yaml",
                        text(), "DIR");
  options.add_options()(
      "programs", "Programs of your own: folders with train.cpp and expected.yaml", text(), "DIR");
  options.add_options()("device", "cpu over Gloo, or cuda over NCCL", text()->default_value("cpu"),
                        "NAME");
  options.add_options()("no-build",
                        "Do not build, for example on a compute node without a compiler");
  options.add_options("hidden")("names", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"names"});
  return options;
}

void say_result(const SampleResult& result, size_t number, size_t count) {
  terminal::say("  " + std::to_string(number) + "/" + std::to_string(count) + "  " +
                name_of_todo(result.sample.todo) + "  " + result.sample.title() +
                (result.fine() ? ": judged right" : ": " + result.problem) +
                (result.fine() && !result.findings.empty() ? " (" + result.findings + ")" : ""));
  if (!result.fine() && !result.sample.words.empty()) {
    terminal::say("      " + result.sample.words);
  }
}

// Judges what is not known yet. Each result is kept at once, so that an interrupted run goes on.
class Verification {
 public:
  // task: instead of the chapters' own; may be empty.
  Verification(const Project& project, const Course& course, const cxxopts::ParseResult& parsed,
               const std::string& task)
      : project_(project),
        course_(course),
        device_(parsed["device"].as<std::string>()),
        again_(parsed.count("again") > 0 || !task.empty()),
        keeps_(task.empty()),
        list_all_(parsed.count("all") > 0),
        keys_(project, course),
        published_(published_results(project)),
        own_(project.build / "verify.tsv") {
    how_.device = device_;
    how_.build = parsed.count("no-build") == 0;
    how_.seed = parsed["seed"].as<uint64_t>();
    how_.plans = parsed.count("plans")   ? parsed["plans"].as<size_t>()
                 : parsed.count("quick") ? 1
                                         : kPlans;
    how_.task = task;
    if (parsed.count("words")) words_.emplace(parsed["words"].as<std::string>());
  }

  std::vector<KeptResult> judge(const std::vector<Sample>& samples) {
    std::vector<KeptResult> results;
    std::vector<Sample> missing;
    for (const auto& sample : samples) {
      const auto* known = again_ ? nullptr : find(sample);
      known ? results.push_back(*known) : missing.push_back(sample);
    }
    if (!results.empty()) {
      terminal::say("  " + count_of(results.size(), "program") +
                    " unchanged since the last verdict; --again judges them all the same");
    }
    const auto commit = present_commit(project_);
    size_t number = 0;
    judge_samples(project_, course_, missing, how_, [&](const SampleResult& result) {
      ++number;
      if (!result.fine() || list_all_ || number % 10 == 0) {
        say_result(result, number, missing.size());
      }
      if (words_) words_->add(result);
      results.push_back(kept(result, device_, keys_.of(result.sample, device_), commit));
      if (keeps_) own_.keep(results.back());
    });
    return results;
  }

  void record(const std::vector<KeptResult>& results) {
    // Read again, for another shard may have written meanwhile.
    published_ = KeptResults(published_results(project_));
    for (const auto& result : results) published_.add(result);
    published_.write();
    terminal::say("Wrote " + project_.shown(published_results(project_)) + ".");
  }

 private:
  // Only a verdict that was right is taken as known.
  const KeptResult* find(const Sample& sample) const {
    const auto key = keys_.of(sample, device_);
    for (const auto* kept : {&own_, &published_}) {
      const auto* known = kept->find(sample, device_, key);
      if (known && known->as_wanted && known->blamed_rightly) return known;
    }
    return nullptr;
  }

  const Project& project_;
  const Course& course_;
  std::string device_;
  bool again_, keeps_, list_all_;
  CheckOptions how_;
  std::optional<EveryWord> words_;
  ResultKeys keys_;
  KeptResults published_, own_;
};

}  // namespace

int run_verify(const Project& project, const Arguments& arguments) {
  auto options = verify_command();
  const auto parsed = parse(options, "[NAME ...] [--todo N] [--quick] [--shard I/N]",
                            "It judges each program in two forms: only by what it does, and as "
                            "a\nstudent's file with the comments of its TODOs.\n",
                            arguments);
  if (!parsed) return 0;
  const auto course = load_course(
      project.chapters(), parsed->count("chapter") ? Chapters::with_tests : Chapters::published);
  auto samples = chosen_samples(*parsed, all_samples(*parsed, course));
  if (parsed->count("record") && (parsed->count("task") || parsed->count("chapter"))) {
    throw UsageError(
        "--record is for the whole course on its own task: leave --task and --chapter out.");
  }
  if (parsed->count("print")) {
    for (const auto& sample : samples) {
      if (sample.form == Form::solution) std::fputs(edited_text(course, sample).c_str(), stdout);
    }
    return 0;
  }
  if (parsed->count("shard")) keep_shard(samples, (*parsed)["shard"].as<std::string>());
  const auto job_scripts = std::ranges::count_if(samples, &Sample::job);
  if (job_scripts > 0) {
    if (const auto why = job_check_impossible(project)) {
      terminal::say("Not tried, " + std::to_string(job_scripts) + " job scripts: " + *why);
      std::erase_if(samples, &Sample::job);
    }
  }
  bool right = true;
  for (const auto& task : (*parsed)["task"].as<std::vector<std::string>>()) {
    if (!task.empty()) terminal::say("On " + task + ":");
    Verification verification(project, course, *parsed, task);
    const auto results = verification.judge(samples);
    print_matrix(results);
    print_deviations(results);
    if (parsed->count("record")) verification.record(results);
    right = right && std::ranges::all_of(results, [](const KeptResult& result) {
              return result.as_wanted && result.blamed_rightly;
            });
  }
  return right ? 0 : 1;
}

}  // namespace checker
