#include "judge/check.hpp"

#include <algorithm>
#include <chrono>

#include "judge/compile.hpp"
#include "judge/given.hpp"
#include "judge/job_check.hpp"
#include "judge/trainer_check.hpp"
#include "judge/verdicts.hpp"
#include "ladder/programs.hpp"
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
  Check(const Project& project, const Ladder& ladder, const Step& step, const CheckOptions& options)
      : project_(project),
        ladder_(ladder),
        step_(step),
        options_(options),
        source_(project.source / (options.solution ? "solutions" : "steps") / step.name /
                "train.cpp") {
    // A program that is judged by itself lies beside its text.
    const auto beside = fs::path(options.program).parent_path() / "train.cpp";
    shown_ = project.shown(source_);
    if (!options.program.empty()) shown_ = project.shown(source_ = fs::absolute(beside));
    if (options.hand_in) source_ = options.hand_in->folder / "train.cpp";
    report_.step = step.name;
    report_.solution = options.solution;
  }

  Report run() {
    const bool student = options_.student || (options_.program.empty() && !options_.solution);
    const std::string text = trainer_text();
    const std::string job = job_text();
    if (student && is_given_code(ladder_, ladder_.trainer, step_, text) &&
        (job.empty() || is_given_code(ladder_, ladder_.job, step_, job))) {
      return all_open();
    }
    if (options_.hand_in && only_the_job() && job_impossible()) {  // so nothing needs building
      judge_job({}, job, untouched_todos(ladder_, ladder_.job, step_, job));
      return report_;
    }
    const auto begin_build = std::chrono::steady_clock::now();
    if (!build()) return report_;
    report_.build_seconds = since(begin_build);
    const auto begin = std::chrono::steady_clock::now();
    const auto untouched = [&](const Source& source, const std::string& in) {
      return student ? untouched_todos(ladder_, source, step_, in) : std::set<int>{};
    };
    const TemporaryFolder temporary;
    Work work;
    work.folder = options_.keep.empty() ? temporary.path() : fs::absolute(options_.keep);
    work.plan = make_plan(project_.build / "bin" / "replay",
                          {.task = options_.task.empty() ? ladder_.task : options_.task,
                           .seed = options_.seed != 0 ? options_.seed : fresh_seed(),
                           .nodes = nodes_of_worlds()},
                          work.folder, options_.servers);
    if (options_.job_script.empty()) judge_trainer(work, untouched(ladder_.trainer, text));
    if (!job.empty()) judge_job(work, job, untouched(ladder_.job, job));
    not_checked();
    report_.judge_seconds = since(begin);
    return report_;
  }

 private:
  void stage(std::string_view text) const {
    if (options_.on_stage) options_.on_stage(text);
  }

  bool only_the_job() const {
    return std::ranges::all_of(step_.todos,
                               [&](int todo) { return ladder_.job.todos().contains(todo); });
  }

  std::string trainer_text() const {
    if (options_.hand_in) return options_.hand_in->trainer;
    return options_.program.empty() || options_.student ? read_file(source_) : "";
  }

  // Empty for a step without TODOs in its job script.
  std::string job_text() const {
    if (options_.hand_in) return options_.hand_in->job;
    if (!options_.job_script.empty()) return options_.job_script;
    if (!options_.program.empty() || !ladder_.edits_job(step_)) return "";
    const auto folder = options_.solution ? fs::path("solutions") / step_.name : fs::path("sbatch");
    return read_file(project_.source / folder / (step_.name + ".sbatch"));
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
      program_ = options_.hand_in->folder / "train";
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
    const auto checked = check_trainer(project_, ladder_, step_,
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
    report_.verdicts =
        to_verdicts(ladder_, ladder_.trainer, step_, checked.findings, untouched, checked.cut_off);
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
      for (const int todo : step_.todos) {
        if (!ladder_.job.todos().contains(todo)) continue;
        const bool open = untouched.contains(todo);
        add_verdict(todo, open ? State::open : State::not_judged,
                    trains ? "it cannot be tried here" : *impossible, trains && !open);
      }
      if (trains) report_.not_checked.push_back("the job script: " + *impossible);
      return;
    }
    stage("running it as a job");
    const auto findings = check_job(project_, ladder_, step_,
                                    {.script = script,
                                     .trainer = fs::absolute(program_),
                                     .plan = work.plan,
                                     .folder = work.folder,
                                     .box = options_.box});
    auto verdicts = to_verdicts(ladder_, ladder_.job, step_, findings, untouched, false);
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

  // The ladder says which worlds pretend several nodes. GPUs are not shared, so there each rank has
  // one of its own, on this node.
  std::vector<std::vector<size_t>> nodes_of_worlds() {
    std::vector<std::vector<size_t>> all;
    for (const int world : worlds_to_run()) {
      const auto size = static_cast<size_t>(world);
      const auto found = std::ranges::find(ladder_.worlds, size, &std::vector<size_t>::size);
      const bool known = options_.device == "cpu" && found != ladder_.worlds.end();
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
  const Ladder& ladder_;
  const Step& step_;
  const CheckOptions& options_;
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

Report check_step(const Project& project, const Ladder& ladder, const Step& step,
                  const CheckOptions& options) {
  return Check(project, ladder, step, options).run();
}

}  // namespace checker
