#include <algorithm>
#include <cctype>
#include <string_view>

#include "box/box.hpp"
#include "course/version.hpp"
#include "grade/grading.hpp"
#include "grade/render.hpp"
#include "process/build.hpp"
#include "process/task_module.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"
#include "verbs/options.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

cxxopts::Options grade_command() {
  cxxopts::Options options("./workbook grade",
                           "Grades a class. DIR holds a folder or an archive for each student.\n");
  options.add_options()("output", "Write results and reports into this folder",
                        cxxopts::value<std::string>(), "OUT")(
      "j,jobs", "Number of hand-ins to check at the same time (default: as many as fit)",
      cxxopts::value<size_t>(),
      "N")("scheme", "File with points, the deadline and the list of students",
           cxxopts::value<std::string>(), "FILE")("resume", "Continue an interrupted run")(
      "unsafe", "Run students' programs without a box, with all your rights");
  options.add_options("hidden")("what", "", cxxopts::value<std::string>());
  options.parse_positional({"what"});
  return options;
}

// Compilers are started by lines for a shell, in which these paths stand as they are.
void expect_plain(const fs::path& output) {
  const bool plain = std::ranges::all_of(output.string(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("/._-+").find(c) != std::string_view::npos;
  });
  if (plain) return;
  throw Error("--output " + output.string() +
              ": the path may hold only letters, digits and . _ - + because hand-ins are built "
              "there. Fix: choose another --output.");
}

std::string bar(size_t done, size_t all) {
  constexpr size_t width = 20;
  const size_t full = all == 0 ? width : done * width / all;
  return "[" + std::string(full, '#') + std::string(width - full, '-') + "] " +
         std::to_string(done) + "/" + std::to_string(all) + " ";
}

void refuse_without_a_box() {
  if (const auto why = Box({}).refuses()) {
    throw Error(*why + " Or use --unsafe, if you trust every student.");
  }
}

void write_reports(const grade::ClassReport& report, const fs::path& output) {
  write_file(output / "report.json", grade::to_json(report));
  write_file(output / "report.csv", grade::to_csv(report));
  write_file(output / "report.xml", grade::to_junit(report));
  write_file(output / "report.html", grade::to_html(report));
}

std::set<int> todos_of(const Course& course) {
  std::set<int> todos;
  for (const auto& [number, ignored] : course.todos) {
    if (!is_exercise(number)) todos.insert(number);
  }
  return todos;
}

// The results of another course, or of another class, are not to be mixed with these.
void expect_ours(const grade::Store& store, const std::string& course, const fs::path& output,
                 bool resume) {
  if (!store.empty() && !resume) {
    throw Error(output.string() +
                " already holds results. Fix: continue with --resume, or choose another --output.");
  }
  const auto before = store.setting("course");
  if (before && *before != course) {
    throw Error(output.string() + " holds results of another version of the course (" + *before +
                ", this is " + course + "). Fix: choose another --output.");
  }
}

}  // namespace

int run_grade(const Project& project, const Arguments& arguments) {
  const auto parsed = parse(grade_command(), "DIR --output OUT [options]",
                            "It does not look for similar hand-ins. The exit status is 0 if it "
                            "could check everything,\nwhatever the verdicts.",
                            arguments);
  if (!parsed) return 0;
  if (!parsed->count("what")) throw UsageError("Which folder holds the hand-ins?");
  if (!parsed->count("output")) throw UsageError("Where should the results go? Use --output OUT");
  const bool unsafe = parsed->count("unsafe") > 0;
  if (!unsafe) refuse_without_a_box();
  const auto course = load_course(project.chapters());
  grade::GradingOptions options{.folder = fs::absolute((*parsed)["what"].as<std::string>()),
                                .output = fs::absolute((*parsed)["output"].as<std::string>()),
                                .scheme = grade::plain_scheme(todos_of(course)),
                                .jobs = grade::fitting_jobs(),
                                .unsafe = unsafe};
  if (parsed->count("scheme")) {
    options.scheme = grade::read_scheme((*parsed)["scheme"].as<std::string>(), todos_of(course));
  }
  if (parsed->count("jobs")) options.jobs = std::max<size_t>(1, (*parsed)["jobs"].as<size_t>());
  expect_plain(options.output);
  const auto hand_ins = grade::find_submissions(options.folder);
  for (const auto& name : hand_ins.ignored) {
    terminal::say("  not a hand-in: " + grade::shown_name(name));
  }
  fs::create_directories(options.output);
  grade::Store store(options.output / "results.db");
  const auto version = course_version(project);
  expect_ours(store, version, options.output, parsed->count("resume") > 0);
  store.set("course", version);

  std::vector<std::string> needed{"replay", "solution_" + course.steps.front().label()};
  std::set<std::string> tasks;
  for (const auto& chapter : course.chapters) tasks.insert(chapter.task);
  const auto modules = targets_of_tasks(project, tasks);
  needed.insert(needed.end(), modules.begin(), modules.end());
  build_targets(project, needed, "building the libraries");
  terminal::Stage stage("judging " + count_of(hand_ins.all.size(), "hand-in"));
  options.on_progress = [&](size_t done, size_t all, std::string_view what) {
    stage.note(bar(done, all) + std::string(what));
  };
  const auto report = grade::grade_class(project, course, hand_ins, store, options);
  stage.done();
  write_reports(report, options.output);
  terminal::say("");
  for (const auto& line : grade::to_lines(report, terminal::width())) terminal::say(line);
  terminal::say("");
  terminal::say("  " + (options.output / "report.html").string() + ", and .json, .csv, .xml");
  const bool all_judged = std::ranges::none_of(report.students, [](const grade::Student& student) {
    return !student.problem.empty() && student.possible == 0;
  });
  return all_judged ? 0 : 1;
}

}  // namespace checker
