#include "verbs/check.hpp"

#include <algorithm>

#include "course/programs.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"
#include "verbs/todos.hpp"

namespace checker {

namespace {

cxxopts::Options check_command() {
  cxxopts::Options options("./workbook check",
                           "Builds a step, runs it, and says which TODOs are done.\n");
  options.add_options()("solution", "Check the reference instead of your own program")(
      "no-build", "Do not build, for example on a compute node without a compiler")(
      "device", "cpu or cuda", cxxopts::value<std::string>()->default_value("cpu"), "D")(
      "world", "Number of ranks; repeat it for several worlds", cxxopts::value<std::vector<int>>(),
      "N")("task", "Check it on another task's data and model", cxxopts::value<std::string>(),
           "NAME")("keep", "Keep the files of the runs in this folder",
                   cxxopts::value<std::string>(), "DIR");
  options.add_options("hidden")("what", "", cxxopts::value<std::vector<std::string>>());
  options.parse_positional({"what"});
  return options;
}

CheckOptions read_check_options(const cxxopts::ParseResult& parsed) {
  CheckOptions options;
  options.solution = parsed.count("solution") > 0;
  options.build = parsed.count("no-build") == 0;
  options.device = parsed["device"].as<std::string>();
  if (options.device != "cpu" && options.device != "cuda") {
    throw UsageError("--device must be cpu or cuda.");
  }
  if (parsed.count("world")) options.worlds = parsed["world"].as<std::vector<int>>();
  for (const int world : options.worlds) {
    if (world < 1 || world > 64) throw UsageError("--world must be between 1 and 64.");
  }
  if (parsed.count("task")) options.task = parsed["task"].as<std::string>();
  if (parsed.count("keep")) {
    options.keep = std::filesystem::absolute(parsed["keep"].as<std::string>());
  }
  return options;
}

/// One call of the verb.
class CheckCall {
 public:
  CheckCall(const Project& project, const Judge& judge, CheckOptions options)
      : project_(project),
        judge_(judge),
        options_(std::move(options)),
        course_(load_course(project.chapters())) {}

  int run(const Arguments& words) {
    const auto steps = chosen(words);
    if (steps.empty()) return 0;
    bool passed = true;
    std::optional<int> fix;
    const Step* where = steps.back();
    for (const auto* step : steps) {
      const auto report = judge(*step);
      passed = passed && report.passed();
      for (const auto& line : report_lines(report, course_, look_)) terminal::say(line);
      terminal::say("");
      if (!fix && !report.compile_error && (fix = todo_to_fix(report))) where = step;
      if (steps.size() == 1 && report.compile_error) return 1;
    }
    if (!options_.solution) say_what_is_next(*where, fix, steps.size() > 1);
    return passed ? 0 : 1;
  }

 private:
  std::vector<const Step*> chosen(const Arguments& words) {
    std::vector<const Step*> steps;
    if (words.empty()) {
      const auto next = next_todo(present_standings(project_, course_));
      if (next) return {&course_.step(course_.todos.at(*next).step)};
      terminal::say("All TODOs are done. To check them again: ./workbook check all");
    } else if (words == Arguments{"all"}) {
      for (const auto& step : course_.steps) {
        if (!step.todos.empty() && !step.is_beside()) steps.push_back(&step);
      }
    } else if (words.size() > 1 && !is_one_name(words)) {
      for (const auto& word : words) {
        for (const auto* step : chosen({word})) {
          if (std::ranges::find(steps, step) == steps.end()) steps.push_back(step);
        }
      }
    } else if (steps = steps_of_named_chapter(course_, words); !steps.empty()) {
      std::erase_if(steps, [](const Step* step) { return step->todos.empty(); });
    } else {
      const auto& step = named_step(course_, words);
      if (!step.todos.empty()) return {&step};
      terminal::say("Step " + step.name + " has no TODOs, so there is nothing to check.");
    }
    return steps;
  }

  Report judge(const Step& step) {
    const auto before = take_fingerprints(project_, course_, step);
    const bool worth_remembering = remembers(step);
    terminal::Stage stage("the check of step " + step.label());
    auto options = options_;
    options.on_stage = [&](std::string_view text) { stage.note(text); };
    auto report = judge_(course_, step, options);
    stage.done();
    terminal::say("");
    if (!worth_remembering) return report;
    const auto remark = remember(project_, course_, report, before);
    if (!remark.empty()) terminal::say(remark + "\n");
    return report;
  }

  // A verdict is remembered if it is one on the student's present text, with nothing left out.
  bool remembers(const Step& step) const {
    if (options_.solution || !options_.worlds.empty()) return false;
    if (options_.build) return true;
    std::error_code error;
    const auto built =
        std::filesystem::last_write_time(find_program(project_, step, false).file, error);
    for (const auto& [file, ignored] : take_fingerprints(project_, course_, step)) {
      if (error || std::filesystem::last_write_time(project_.source / file, error) > built) {
        return false;
      }
    }
    return !error;
  }

  // fix: what is to be fixed in the program of this step, if anything is.
  void say_what_is_next(const Step& step, std::optional<int> fix, bool several) {
    const auto all = present_standings(project_, course_);
    if (several) {
      const auto todos = todos_of_series(step.todos.back());
      terminal::say(std::to_string(count_done(all, todos)) + " of " +
                    count_of(todos.size(), "TODO") + (todos.size() == 1 ? " is" : " are") +
                    " done.");
    }
    if (fix) return say(next_lines(course_, fix, look_, &step));
    const auto next = next_todo(all, step.todos.back());
    if (!next && step.is_beside()) return terminal::say("All exercises of this chapter are done.");
    if (next && !step.is_beside() && chapter_is_done(step, all)) {
      terminal::say("The chapter " + step.chapter +
                    " is done. Experiments to try now: " + kExperiments);
    }
    say(next_lines(course_, next, look_));
  }

  bool chapter_is_done(const Step& one, const Standings& all) const {
    return std::ranges::all_of(course_.steps, [&](const Step& step) {
      return step.chapter != one.chapter || count_done(all, step.todos) == step.todos.size();
    });
  }

  static void say(const std::vector<std::string>& lines) {
    for (const auto& line : lines) terminal::say(line);
  }

  // The steps' TODOs, or those of the exercises to which this one belongs.
  std::vector<int> todos_of_series(int one) const {
    std::vector<int> todos;
    for (const auto& [number, ignored] : course_.todos) {
      if (same_series(number, one)) todos.push_back(number);
    }
    return todos;
  }

  const Project& project_;
  const Judge& judge_;
  const CheckOptions options_;
  const Course course_;
  const Look look_ = present_look();
};

}  // namespace

int check_with(const Project& project, const Arguments& arguments, const Judge& judge) {
  const auto parsed = parse(
      check_command(), "[NN ... | TODO n | CHAPTER | all] [options]",
      "Without a step, it checks the step with the first open TODO. \"05\" is a step. \"TODO 5\" "
      "is the\nstep with that TODO. \"C4\" is an exercise. The exit status is 0 if everything "
      "checked is done.\nWith --world the verdict is not saved, because it covers less.",
      arguments);
  if (!parsed) return 0;
  Arguments words;
  if (parsed->count("what")) words = (*parsed)["what"].as<std::vector<std::string>>();
  return CheckCall(project, judge, read_check_options(*parsed)).run(words);
}

int run_check(const Project& project, const Arguments& arguments) {
  return check_with(project, arguments, judge_of(project));
}

}  // namespace checker
