#include "grade/grading.hpp"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "box/control_group.hpp"
#include "course/version.hpp"
#include "process/lines.hpp"
#include "process/ranks.hpp"
#include "report/json.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::grade {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr uint32_t kFirstUser = 61'000;
constexpr uint64_t kLeastMemory = 3ULL << 30, kMostMemory = 6ULL << 30;  // of one hand-in

uint64_t physical_memory() {
  return static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES))) *
         static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// What its processes may take together: all of them leave a quarter to the machine.
uint64_t memory_of_one(size_t jobs) {
  return std::clamp(physical_memory() / 4 * 3 / jobs, kLeastMemory, kMostMemory);
}

// Takes in what the workers say.
class Desk {
 public:
  Desk(Store& store, const GradingOptions& options, std::vector<const Submission*> pending)
      : store_(store),
        options_(options),
        pending_(std::move(pending)),
        said_(pending_.size()),
        last_words_(pending_.size()),
        finished_(pending_.size()) {}

  void line(size_t worker, bool is_error, std::string_view piece) {
    if (is_error) {
      last_words_[worker] = piece;
      return;
    }
    auto& text = said_[worker];
    text += piece;
    const auto said = json::parse(text, nullptr, /*allow_exceptions=*/false);
    if (!said.is_object() && piece.size() == LineCutter::longest) return;  // there is more of it
    text.clear();
    if (!said.is_object()) return;
    const auto& name = pending_[worker]->name;
    if (const auto stage = said.find("stage"); stage != said.end()) {
      progress(shown_name(name, 24) + " " + stage->get<std::string>());
    } else if (const auto found = said.find("gathered"); found != said.end()) {
      store_.gathered(name, {.remarks = found->at("remarks").get<std::vector<std::string>>(),
                             .version = found->at("version").get<std::string>()});
    } else if (const auto report = said.find("report"); report != said.end()) {
      store_.add(name, report_from_json(report->dump()));
    } else if (said.contains("finished")) {
      store_.finish(name, said.value("problem", ""));
      finished_[worker] = true;
      ++done_;
      progress("");
    }
  }

  /// Why a worker did not end; empty if it did.
  std::string failure(size_t worker, const GroupResult& result) const {
    if (finished_[worker]) return "";
    const auto& words = last_words_[worker];
    return "the checker itself failed (" + result.ranks.front().exit.describe() + ")" +
           (words.empty() ? "" : ": " + words);
  }

 private:
  void progress(const std::string& what) const {
    if (options_.on_progress) options_.on_progress(done_, pending_.size(), what);
  }

  Store& store_;
  const GradingOptions& options_;
  std::vector<const Submission*> pending_;
  std::vector<std::string> said_, last_words_;  // the beginning of a long line; on standard error
  std::vector<bool> finished_;
  size_t done_ = 0;
};

Command worker_command(const Project& project, const Submission& submission, size_t number,
                       const Stored& stored, const GradingOptions& options) {
  const auto work = options.output / "work" / std::to_string(number);
  fs::create_directories(work);
  Command command;
  command.arguments = {(project.build / "bin" / "checker").string(),
                       "judge-hand-in",
                       submission.path.string(),
                       "--work",
                       work.string(),
                       "--programs",
                       (options.output / "work" / "programs").string(),
                       "--user",
                       std::to_string(kFirstUser + number),
                       "--memory",
                       std::to_string(memory_of_one(options.jobs)),
                       "--hide",
                       fs::absolute(options.folder).string(),
                       "--hide",
                       fs::absolute(options.output).string()};
  if (submission.archive) command.arguments.emplace_back("--archive");
  if (options.unsafe) command.arguments.emplace_back("--unsafe");
  for (const auto& report : stored.reports) {
    command.arguments.insert(command.arguments.end(), {"--done", report.step});
  }
  return command;
}

void judge_pending(const Project& project, const std::vector<const Submission*>& pending,
                   Store& store, const GradingOptions& options,
                   std::map<std::string, std::string>& failures) {
  std::vector<std::vector<Command>> workers;
  for (const auto* submission : pending) {
    const auto stored = store.find(submission->name);
    const bool same = stored && stored->stamp == submission->stamp;
    if (!same) store.begin(submission->name, submission->stamp);
    workers.push_back(
        {worker_command(project, *submission, workers.size(), same ? *stored : Stored{}, options)});
  }
  Desk desk(store, options, pending);
  RankOptions how;
  how.width = options.jobs;
  how.on_line = [&](size_t worker, bool is_error, std::string_view text) {
    desk.line(worker, is_error, text);
    return true;
  };
  const auto results = run_groups(workers, how);
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].interrupted_by) {
      throw Error("Interrupted. Results so far are kept: continue with --resume.");
    }
    const auto failure = desk.failure(i, results[i]);
    if (!failure.empty()) failures[pending[i]->name] = failure;
  }
}

Student student_of(const Submission& submission, const Stored& stored, const std::string& failure,
                   const Course& course, const Scheme& scheme) {
  Student student;
  student.name = submission.name;
  const auto told = scheme.handed_in.find(submission.name);
  student.handed_in = told == scheme.handed_in.end() ? submission.handed_in : told->second;
  student.late = scheme.due && *student.handed_in > *scheme.due;
  student.problem = failure.empty() ? stored.problem : failure;
  student.remarks = stored.remarks;
  student.version = stored.version;
  student.reports = stored.reports;
  mark(student, course, scheme, stored.finished);
  return student;
}

}  // namespace

ClassReport grade_class(const Project& project, const Course& course, const Submissions& hand_ins,
                        Store& store, const GradingOptions& options) {
  ControlGroup::remove_orphans();
  fs::remove_all(options.output / "work");
  fs::create_directories(options.output / "work" / "programs");
  std::vector<const Submission*> pending;
  for (const auto& submission : hand_ins.all) {
    const auto stored = store.find(submission.name);
    if (!stored || !stored->finished || stored->stamp != submission.stamp) {
      pending.push_back(&submission);
    }
  }
  std::map<std::string, std::string> failures;
  judge_pending(project, pending, store, options, failures);
  fs::remove_all(options.output / "work");

  ClassReport report{
      .course = course_version(project),
      .when = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()),
      .scheme = options.scheme,
      .titles = {},
      .steps = {},
      .students = {}};
  for (const auto& [number, todo] : course.todos) {
    if (is_exercise(number)) continue;
    report.titles[number] = todo.title;
    report.steps[number] = todo.step;
  }
  auto absent = options.scheme.students;
  for (const auto& submission : hand_ins.all) {
    absent.erase(submission.name);
    report.students.push_back(student_of(submission, *store.find(submission.name),
                                         failures[submission.name], course, options.scheme));
  }
  for (const auto& name : absent) {
    auto& student = report.students.emplace_back();
    student.name = name;
    student.absent = true;
    mark(student, course, options.scheme, true);
  }
  std::ranges::sort(report.students, {}, &Student::name);
  return report;
}

size_t fitting_jobs() {
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  return std::clamp<size_t>(physical_memory() / kLeastMemory, 1, cores);
}

}  // namespace checker::grade
