#include "verbs/challenge.hpp"

#include <algorithm>

#include "course/render.hpp"
#include "course/update.hpp"
#include "judge/build_cache.hpp"
#include "judge/compile.hpp"
#include "process/task_module.hpp"
#include "process/trainer.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/arguments.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFolder = "challenge";  // of the project; git ignores it

// From the serial trainer, the course's first step, to the last one of its chapter that changes the
// program.
const Step& serial_step(const Course& course) { return course.steps.front(); }

const Step& finished_step(const Course& course) {
  const Step* last = nullptr;
  for (const auto& step : course.steps) {
    const bool same = step.chapter == serial_step(course).chapter;
    if (same && !course.todos_of(step, false).empty()) last = &step;
  }
  if (!last) throw Error("This course has no trainer to finish.");
  return *last;
}

fs::path file_of(const Project& project, const Course& course) {
  return project.source / kFolder / course.program_of(serial_step(course)).name;
}

// The serial trainer without a word of the course, under what is asked for.
std::string given_text(const Course& course) {
  const auto& step = serial_step(course);
  const auto& file = course.program_of(step);
  const std::string header =
      "// The challenge: make this serial trainer one that runs on any number of ranks.\n"
      "//\n"
      "// It is finished when W ranks together do what one rank does with a batch W times as "
      "large:\n"
      "//   - Each rank has its share of every split, and no sample counts twice in an "
      "evaluation.\n"
      "//   - All ranks train one model, in a new order of the samples in every epoch.\n"
      "//   - The losses that it reports are those of all ranks together.\n"
      "//   - One rank prints what this program prints, and saves the model as\n"
      "//     model-best.safetensors and model-final.safetensors.\n"
      "//   - All ranks leave together.\n"
      "// The library is distributed_utils/distributed_utils.hpp. There are no TODOs here.\n"
      "//\n"
      "// Judge it: ./workbook challenge\n"
      "// Run it: ./workbook challenge --run --world 2\n\n";
  return header +
         std::string(trim(strip_comments(render(course, file, step, Rendering::solution),
                                         file.source.comment()))) +
         "\n";
}

// "build/cpu/workshop/challenge/train.cpp:88" is a copy: people know the file itself.
std::string with_own_file(std::string text, const Project& project, const fs::path& copy,
                          const fs::path& own) {
  text = replaced(std::move(text), copy.string(), project.shown(own));
  return replaced(std::move(text), project.shown(copy), project.shown(own));
}

class ChallengeCall {
 public:
  // file: to be judged instead of the one that is handed out; may be empty.
  ChallengeCall(const Project& project, const Judge& judge, const fs::path& file)
      : project_(project),
        judge_(judge),
        own_(file.empty() ? file_of(project, course_) : fs::absolute(file)) {}

  void hand_out(bool again) const {
    if (again && fs::exists(own_)) {
      const auto kept = name_beside(own_, "reset");
      fs::rename(own_, kept);
      terminal::say("Your version is saved as " + project_.shown(kept) + ".");
    }
    write_file(own_, given_text(course_));
    terminal::say(project_.shown(own_) +
                  " is the serial trainer. Make it run on any number of ranks.");
    terminal::say("The comment at its top says what it must do. There are no TODOs.");
    terminal::say("");
    terminal::say("  judge  ./workbook challenge");
    terminal::say("  run    ./workbook challenge --run --world 2");
  }

  bool is_handed_out() const { return fs::exists(own_); }

  int judge() {
    const auto text = read_file(own_);
    if (text == given_text(course_)) {
      terminal::say(project_.shown(own_) + " is unchanged. Edit it, then run this again.");
      return 1;
    }
    const auto& step = finished_step(course_);
    terminal::Stage stage("judging the challenge");
    const auto program = built(stage, {});
    if (program.program.empty()) {
      stage.failed();
      say_compile_error(program, step);
      return 1;
    }
    CheckOptions options;
    options.program = program.program.string();
    options.build = false;
    options.plans = kPlans;  // the same judge, whole
    options.on_stage = [&](std::string_view what) { stage.note(what); };
    const auto report = judge_(course_, step, options);
    stage.done();
    terminal::say("");
    say_verdict(report, program.program.parent_path() / program_name());
    return report.passed() ? 0 : 1;
  }

  int run(size_t world, const Arguments& trainer_options) {
    CachedProgram program;
    {
      terminal::Stage stage("building the challenge");
      program = built(stage, trainer_options);
      program.program.empty() ? stage.failed() : stage.done();
    }
    if (program.program.empty()) {
      say_compile_error(program, finished_step(course_));
      return 1;
    }
    const TemporaryFolder meeting;
    const TrainerRun run{
        .program = program.program,
        .world_size = world,
        .arguments = with_output(trainer_options, project_.build / "runs" / kFolder),
        .store = meeting.path() / "store"};
    RankOptions ranks;
    if (world == 1) ranks.wiring = {.pipe_output = false, .pipe_error = false};
    const auto result = run_ranks(rank_commands(run), ranks);
    if (!result.success()) terminal::complain(describe_failure(result));
    return result.status();
  }

 private:
  std::string program_name() const { return course_.program_of(serial_step(course_)).name; }

  CachedProgram built(terminal::Stage& stage, const Arguments& trainer_options) const {
    stage.note("building");
    const bool asks = has_option(trainer_options, "--task");
    const auto task = course_.chapter_of(finished_step(course_)).task;
    const BuildCache cache(
        project_, true,
        asks ? targets_of_task(project_, trainer_options) : targets_of_task(project_, task));
    CachedProgram program{.name = kFolder, .files = {{program_name(), read_file(own_)}}};
    cache.build({&program, 1});
    return program;
  }

  void say_compile_error(const CachedProgram& program, const Step& step) const {
    Report report;
    report.step = step.name;
    const auto copy = project_.build / "workshop" / kFolder / program_name();
    report.compile_error = first_error(program.output, copy, project_.shown(own_));
    if (!report.compile_error) throw Error("It does not compile: " + join(program.output, "\n"));
    for (const auto& line : report_lines(report, course_, look_)) say(line, copy);
  }

  void say_verdict(const Report& report, const fs::path& copy) const {
    const auto* finding = report.first_finding();
    if (!finding && report.passed()) {
      terminal::say("The challenge is done: your trainer does everything that was asked.");
      return;
    }
    if (!finding) {
      for (const auto& line : report_lines(report, course_, look_)) say(line, copy);
      return;
    }
    terminal::say("The first mistake is:\n");
    for (const auto& line : finding_lines(*finding, 2, look_)) say(line, copy);
    const auto& todo = course_.todos.at(finding->todo);
    terminal::say("");
    if (!report.conditions.empty()) terminal::say("This run: " + report.conditions);
    terminal::say("The course explains it at " + name_of_todo(todo.number) + ", step " + todo.step +
                  ".");
  }

  void say(const std::string& line, const fs::path& copy) const {
    terminal::say(with_own_file(line, project_, copy, own_));
  }

  const Project& project_;
  const Judge& judge_;
  const Course course_ = load_course(project_.chapters());
  const fs::path own_;
  const Look look_ = present_look();
};

}  // namespace

int challenge_with(const Project& project, const Arguments& arguments, const Judge& judge) {
  cxxopts::Options options(
      "./workbook challenge",
      "Gives you the serial trainer without TODOs, and checks what you make of it.\n");
  options.add_options()("again", "Start over; your version is saved next to it")(
      "run", "Run it instead of checking it")("world", "Number of ranks that run it",
                                              cxxopts::value<size_t>()->default_value("2"), "N")(
      "file", "Check or run this file instead of the one in challenge/",
      cxxopts::value<std::string>(), "FILE");
  const auto split = split_at_dashes(arguments);
  const auto parsed = parse(options, "[--again | --run [--world N] [-- trainer options]]",
                            "The file is in challenge/. The check is the same as for the steps, "
                            "with three plans. It names\nthe first mistake.",
                            split.own);
  if (!parsed) return 0;
  const auto world = (*parsed)["world"].as<size_t>();
  if (world < 1 || world > 64) throw UsageError("--world must be between 1 and 64.");
  const bool named = parsed->count("file") > 0;
  ChallengeCall call(project, judge, named ? (*parsed)["file"].as<std::string>() : "");
  const bool again = parsed->count("again") > 0;
  if (again && named) throw UsageError("--again starts over, so it cannot be used with --file.");
  if (named && !call.is_handed_out()) throw Error("The file that --file names does not exist.");
  if (again || !call.is_handed_out()) {
    call.hand_out(again);
    return 0;
  }
  return parsed->count("run") ? call.run(world, split.passed_on) : call.judge();
}

int run_challenge(const Project& project, const Arguments& arguments) {
  return challenge_with(project, arguments, judge_of(project));
}

}  // namespace checker
