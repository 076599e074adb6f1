#include "judge/check.hpp"

#include <algorithm>
#include <chrono>

#include "course/programs.hpp"
#include "judge/compile.hpp"
#include "judge/given.hpp"
#include "judge/job_check.hpp"
#include "judge/trainer_check.hpp"
#include "judge/verdicts.hpp"
#include "plan/plan.hpp"
#include "process/build.hpp"
#include "process/gpus.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Where a judgement works, and on what.
struct Work {
  fs::path folder;
  Plan plan;
};

class Check {
 public:
  Check(const Project& project, const Course& course, const Step& step, const CheckOptions& options)
      : project_(project),
        course_(course),
        step_(step),
        options_(options),
        main_(course.program_of(step)),
        source_(project.source / course.path_of(step, main_, options.solution)) {
    // A program that is judged by itself lies beside its text.
    const auto beside = fs::path(options.program).parent_path() / main_.name;
    shown_ = project.shown(source_);
    if (!options.program.empty()) shown_ = project.shown(source_ = fs::absolute(beside));
    if (options.hand_in) source_ = options.hand_in->folder / main_.name;
    report_.step = step.name;
    report_.solution = options.solution;
  }

  Report run() {
    const bool student = options_.student || (options_.program.empty() && !options_.solution);
    const std::string job = job_text();
    const auto untouched = student ? untouched_by_the_student(job) : std::set<int>{};
    if (student && nothing_done(job)) return all_open();
    if (options_.hand_in && only_the_job() && job_impossible()) {  // so nothing needs building
      judge_job({}, job, untouched);
      return report_;
    }
    const auto begin_build = std::chrono::steady_clock::now();
    if (!build()) return report_;
    report_.build_seconds = since(begin_build);
    const auto begin = std::chrono::steady_clock::now();
    const TemporaryFolder temporary;
    Work work;
    work.folder = options_.keep.empty() ? temporary.path() : fs::absolute(options_.keep);
    work.plan =
        make_plan(project_.build / "bin" / "replay",
                  {.task = options_.task.empty() ? course_.chapter_of(step_).task : options_.task,
                   .seed = options_.seed != 0 ? options_.seed : fresh_seed(),
                   .nodes = nodes_of_worlds()},
                  work.folder, options_.servers);
    if (options_.job_script.empty()) judge_trainer(work, untouched);
    if (!job.empty()) judge_job(work, job, untouched);
    not_checked();
    report_.judge_seconds = since(begin);
    return report_;
  }

 private:
  void stage(std::string_view text) const {
    if (options_.on_stage) options_.on_stage(text);
  }

  bool only_the_job() const { return course_.todos_of(step_, false).empty(); }

  // The student's text of one of the program's files.
  std::string text_of(const CourseFile& file) const {
    if (!options_.hand_in) return read_file(source_.parent_path() / file.name);
    const auto found = options_.hand_in->files.find(file.name);
    return found == options_.hand_in->files.end() ? "" : found->second;
  }

  // job: the job script's text, empty where it is not judged.
  std::string text_of(const CourseFile& file, const std::string& job) const {
    return file.kind == FileKind::job ? job : text_of(file);
  }

  std::set<int> untouched_by_the_student(const std::string& job) const {
    std::set<int> all;
    for (const auto* file : course_.student_files(step_)) {
      if (file->kind == FileKind::job && job.empty()) continue;
      all.merge(untouched_todos(course_, file->source, step_, text_of(*file, job)));
    }
    return all;
  }

  bool nothing_done(const std::string& job) const {
    return std::ranges::all_of(course_.student_files(step_), [&](const CourseFile* file) {
      return (file->kind == FileKind::job && job.empty()) ||
             is_given_code(course_, file->source, step_, text_of(*file, job));
    });
  }

  // Empty for a step without TODOs in its job script.
  std::string job_text() const {
    const auto* job = course_.job_of(step_);
    if (options_.hand_in) return job ? text_of(*job) : "";
    if (!options_.job_script.empty()) return options_.job_script;
    if (!options_.program.empty() || !course_.edits_job(step_)) return "";
    return read_file(project_.source / course_.path_of(step_, *job, options_.solution));
  }

  void add_verdict(int todo, State state, const std::string& reason, bool untried = false) {
    report_.verdicts.push_back(
        {.todo = todo, .state = state, .findings = {}, .reason = reason, .untried = untried});
  }

  Report all_open() {
    for (const int todo : step_.todos) add_verdict(todo, State::open, "");
    return report_;
  }

  // False: the report says why not.
  bool build() {
    if (options_.hand_in) {
      stage("building");
      program_ = options_.hand_in->folder / kHandedInProgram;
      report_.compile_error = options_.hand_in->build();
    } else {
      build_own();
    }
    if (!report_.compile_error && !fs::exists(program_)) {
      throw Error(project_.shown(program_) + " is not there. Mend: check without --no-build.");
    }
    if (report_.compile_error) {
      for (const int todo : step_.todos) {
        add_verdict(todo, State::not_judged, "the program does not compile");
      }
    }
    return !report_.compile_error;
  }

  void build_own() {
    const auto building = [&](std::string_view progress) {
      stage("building " + std::string(progress));
    };
    program_ = options_.program;
    if (options_.program.empty()) {
      const auto program = find_program(project_, step_, options_.solution);
      program_ = program.file;
      if (options_.build) {
        stage("building");
        report_.compile_error = compile(project_, program.target, source_, building);
      }
    }
    if (options_.build) {
      const std::string replay = "replay";
      const auto built = build_quietly(project_, {&replay, 1}, building);
      if (built.interrupted_by) throw Error("Interrupted.");
      if (!built.success) {
        throw Error("Building the replay failed. Mend: ./workbook build says why.");
      }
    }
  }

  void judge_trainer(const Work& work, const std::set<int>& untouched) {
    const auto checked = check_trainer(project_, course_, step_,
                                       {.program = fs::absolute(program_),
                                        .source = source_,
                                        .shown = shown_,
                                        .plan = work.plan,
                                        .folder = work.folder,
                                        .device = options_.device,
                                        .box = options_.box,
                                        .servers = options_.servers,
                                        .on_stage = [&](std::string_view text) { stage(text); }});
    report_.timeline = checked.timeline;
    report_.largest_deviation = checked.largest_deviation;
    report_.disagreements = checked.disagreements;
    report_.verdicts = to_verdicts(course_, step_, course_.todos_of(step_, false), checked.findings,
                                   untouched, checked.cut_off);
    for (const auto& [todo, reason] : checked.unjudged) leave_unjudged(todo, reason);
  }

  // What was not found wrong is not right either. todo: 0 for all.
  void leave_unjudged(int todo, const std::string& reason) {
    for (auto& verdict : report_.verdicts) {
      if (verdict.state != State::done || (todo != 0 && todo != verdict.todo)) continue;
      verdict.state = State::not_judged;
      verdict.reason = reason;
      verdict.untried = true;
    }
  }

  void judge_job(const Work& work, const std::string& script, const std::set<int>& untouched) {
    const bool trains = std::ranges::none_of(
        report_.verdicts, [](const Verdict& verdict) { return verdict.state == State::wrong; });
    const auto impossible =
        trains ? job_impossible() : std::optional<std::string>("the trainer is wrong");
    if (impossible) {
      for (const int todo : course_.todos_of(step_, true)) {
        const bool open = untouched.contains(todo);
        add_verdict(todo, open ? State::open : State::not_judged,
                    trains ? "it cannot be tried here" : *impossible, trains && !open);
      }
      if (trains) report_.not_checked.push_back("the job script: " + *impossible);
      return;
    }
    stage("running it as a job");
    const auto findings = check_job(project_, course_, step_,
                                    {.script = script,
                                     .trainer = fs::absolute(program_),
                                     .plan = work.plan,
                                     .folder = work.folder,
                                     .box = options_.box});
    auto verdicts =
        to_verdicts(course_, step_, course_.todos_of(step_, true), findings, untouched, false);
    report_.verdicts.insert(report_.verdicts.end(), std::make_move_iterator(verdicts.begin()),
                            std::make_move_iterator(verdicts.end()));
    report_.not_checked.emplace_back(
        "GPUs under Slurm: those of the rehearsal's nodes are stand-ins");
  }

  std::optional<std::string> job_impossible() const { return job_check_impossible(project_); }

  // On GPUs only as many ranks as there are GPUs.
  std::vector<int> worlds_to_run() {
    if (options_.device == "cpu") return options_.worlds;
    const size_t gpus = gpus_here();
    std::vector<int> worlds;
    for (const int world : options_.worlds) {
      if (static_cast<size_t>(world) <= gpus) {
        worlds.push_back(world);
      } else {
        report_.not_checked.push_back(
            "world size " + std::to_string(world) + ": there " +
            (gpus == 1 ? "is 1 GPU" : "are " + std::to_string(gpus) + " GPUs") + " here");
      }
    }
    if (worlds.empty()) {
      throw Error("There is no GPU here that --device cuda could use. Mend: --device cpu");
    }
    return worlds;
  }

  // The chapter says which worlds pretend several nodes. GPUs are not shared, so there each rank
  // has one of its own, on this node.
  std::vector<std::vector<size_t>> nodes_of_worlds() {
    std::vector<std::vector<size_t>> all;
    for (const int world : worlds_to_run()) {
      const auto size = static_cast<size_t>(world);
      const auto& worlds = course_.chapter_of(step_).worlds;
      const auto found = std::ranges::find(worlds, size, &std::vector<size_t>::size);
      const bool known = options_.device == "cpu" && found != worlds.end();
      all.push_back(known ? *found : std::vector<size_t>(size));
    }
    return all;
  }

  void not_checked() {
    if (options_.device == "cpu") {
      report_.not_checked.emplace_back("GPUs and NCCL: this was judged on CPUs, over Gloo");
    } else {
      report_.not_checked.emplace_back("several nodes: local ranks were ranks here");
    }
  }

  const Project& project_;
  const Course& course_;
  const Step& step_;
  const CheckOptions& options_;
  const CourseFile& main_;  ///< the program's file with main()
  fs::path source_, program_;
  std::string shown_;  ///< the source
  Report report_;
};

}  // namespace

bool Report::passed() const {
  return !compile_error && std::ranges::all_of(verdicts, [](const Verdict& verdict) {
    return verdict.state == State::done;
  });
}

const Finding* Report::first_finding() const {
  const Finding* first = nullptr;
  for (const auto& verdict : verdicts) {
    for (const auto& finding : verdict.findings) {
      if (!first || finding.todo < first->todo) first = &finding;
    }
  }
  return first;
}

Report check_step(const Project& project, const Course& course, const Step& step,
                  const CheckOptions& options) {
  return Check(project, course, step, options).run();
}

}  // namespace checker
