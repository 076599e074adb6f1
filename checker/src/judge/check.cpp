#include "judge/check.hpp"

#include <algorithm>
#include <chrono>

#include "course/programs.hpp"
#include "judge/compile.hpp"
#include "judge/job_check.hpp"
#include "judge/not_checked.hpp"
#include "judge/submission.hpp"
#include "judge/trainer_check.hpp"
#include "judge/verdicts.hpp"
#include "judge/worlds.hpp"
#include "plan/plan.hpp"
#include "process/build.hpp"
#include "process/gpus.hpp"
#include "process/task_module.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

double since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

constexpr const char* kDropout = "dropout";
// Settings of plans that are options of every trainer.
bool is_trainers_option(std::string_view key) {
  return key == "epochs" || key == "batch_size" || key == "max_steps";
}

// Which of so many plans is the `number`th of a judgement. Three of twelve are four apart; the
// chapter's list is made for that.
size_t drawn_plan(uint64_t seed, size_t number, size_t plans) {
  const size_t apart = std::max<size_t>(1, plans / kPlans);
  return (seed + number * apart + number / kPlans) % plans;
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
        submission_(project, course, step, options),
        seed_(options.seed != 0 ? options.seed : fresh_seed()) {
    report_.step = step.name;
    report_.solution = options.solution;
  }

  Report run() {
    if (submission_.is_a_students() && submission_.is_as_given()) return all_open();
    const auto untouched = submission_.untouched();
    const auto& job = submission_.job();
    if (options_.hand_in && only_the_job() && job_impossible()) {  // so nothing needs building
      judge_job({}, job, untouched);
      return report_;
    }
    const auto begin_build = std::chrono::steady_clock::now();
    if (!build()) return report_;
    report_.build_seconds = since(begin_build);
    const auto begin = std::chrono::steady_clock::now();
    const TemporaryFolder temporary;
    const auto folder = options_.keep.empty() ? temporary.path() : fs::absolute(options_.keep);
    if (options_.job_script.empty()) judge_trainer(folder, untouched);
    if (!job.empty()) judge_job({folder, plan_in(folder, 0, seed_)}, job, untouched);
    for (auto& line : not_checked_on(options_.device, course_, step_)) {
      report_.not_checked.push_back(std::move(line));
    }
    report_.judge_seconds = since(begin);
    return report_;
  }

 private:
  void stage(std::string_view text) const {
    if (options_.on_stage) options_.on_stage(text);
  }

  bool only_the_job() const { return course_.todos_of(step_, false).empty(); }

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
      throw Error(project_.shown(program_) + " does not exist. Fix: check without --no-build.");
    }
    if (report_.compile_error) {
      auto& error = *report_.compile_error;
      explain(error, course_, step_, submission_.text_of(file_at(course_, step_, error.where)));
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
        auto compiled = compile(project_, program.target, submission_.source(), building);
        report_.compile_error = std::move(compiled.error);
        report_.warnings = std::move(compiled.warnings);
      }
    }
    if (options_.build) {
      auto targets = targets_of_task(project_, task());
      targets.insert(targets.begin(), "replay");
      const auto built = build_quietly(project_, targets, building);
      if (built.interrupted_by) throw Error("Interrupted.");
      if (!built.success) {
        throw Error("Building " + join(targets, " and ") +
                    " failed. Fix: run ./workbook build and read its messages.");
      }
    }
  }

  // Under one plan after the other, until one shows a mistake.
  void judge_trainer(const fs::path& folder, const std::set<int>& untouched) {
    const size_t known = step_.conditions.size();
    // A step with a job script is rehearsed as a job: its program was judged in the steps before.
    const size_t plans = only_the_job() ? 1 : std::min(options_.plans, known);
    for (size_t number = 0; number < plans; ++number) {
      const size_t drawn = only_the_job() ? 0 : drawn_plan(seed_, number, known);
      report_.conditions = in_words(step_.conditions.at(drawn));
      const auto own = number == 0 ? folder : folder / ("plan-" + std::to_string(number + 1));
      judge_trainer(Work{own, plan_in(own, drawn, seed_ + number)}, untouched);
      if (std::ranges::any_of(report_.verdicts, [](const Verdict& verdict) {
            return verdict.state == State::wrong || verdict.state == State::open;
          })) {
        return;
      }
    }
  }

  // As options of the trainer, where they are such; else as the configuration has them.
  static std::string in_words(const Conditions& conditions) {
    std::string text;
    for (const auto& [key, value] : conditions.settings) {
      text += (text.empty() ? "" : " ") +
              (is_trainers_option(key) ? "--" + replaced(key, "_", "-") : key) + " " + value;
    }
    return text;
  }

  void judge_trainer(const Work& work, const std::set<int>& untouched) {
    const auto checked = check_trainer(project_, course_, step_,
                                       {.program = fs::absolute(program_),
                                        .source = submission_.source(),
                                        .shown = submission_.shown(),
                                        .plan = work.plan,
                                        .folder = work.folder,
                                        .device = options_.device,
                                        .untouched = untouched,
                                        .box = options_.box,
                                        .servers = options_.servers,
                                        .on_stage = [&](std::string_view text) { stage(text); }});
    report_.timeline = checked.timeline;
    report_.largest_deviation = std::max(report_.largest_deviation, checked.largest_deviation);
    report_.verdicts = to_verdicts(course_, step_, course_.todos_of(step_, false), checked.findings,
                                   untouched, checked.cut_off, submission_.doubtful());
    unjudged_.insert(unjudged_.end(), checked.unjudged.begin(), checked.unjudged.end());
    for (const auto& [todo, reason] : unjudged_) leave_unjudged(todo, reason);
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
                    trains ? "it cannot be run here" : *impossible, trains && !open);
      }
      if (trains) report_.not_checked.push_back("the job script: " + *impossible);
      return;
    }
    stage("running it as a job, which takes up to a minute");
    const auto checked = check_job(project_, course_, step_,
                                   {.script = script,
                                    .trainer = fs::absolute(program_),
                                    .plan = work.plan,
                                    .folder = work.folder,
                                    .box = options_.box});
    auto verdicts = to_verdicts(course_, step_, course_.todos_of(step_, true), checked.findings,
                                untouched, checked.cut_off, submission_.doubtful());
    report_.verdicts.insert(report_.verdicts.end(), std::make_move_iterator(verdicts.begin()),
                            std::make_move_iterator(verdicts.end()));
    if (!checked.unjudged.empty()) {
      leave_unjudged(checked.unjudged_todo, checked.unjudged);
      report_.not_checked.push_back(checked.unjudged);
    }
    report_.not_checked.emplace_back("GPUs under Slurm: the lab's nodes have stand-ins");
  }

  std::optional<std::string> job_impossible() const { return job_check_impossible(project_); }

  // Whose data and model the step is judged on.
  std::string task() const {
    return options_.task.empty() ? course_.chapter_of(step_).task : options_.task;
  }

  // folder: where the plan's data lie. number: of the step's plans.
  Plan plan_in(const fs::path& folder, size_t number, uint64_t seed) {
    const bool on_gpus = options_.device != "cpu" && !step_.is_beside();
    const auto& conditions = step_.conditions.at(number);
    auto worlds = worlds_for(conditions, options_.worlds,
                             on_gpus ? std::optional(gpus_here()) : std::nullopt);
    report_.not_checked = std::move(worlds.not_checked);
    if (step_.kind == ProgramKind::plain) return plain_plan(step_, worlds.shapes, seed);
    PlanRequest request{
        .task = task(), .seed = seed, .worlds = worlds.shapes, .settings = conditions.settings};
    // Of random numbers on GPUs the replay knows nothing, and other tasks have other settings.
    std::erase_if(request.settings, [&](const auto& setting) {
      return (setting.first == kDropout && on_gpus) ||
             (!is_trainers_option(setting.first) && request.task != course_.chapter_of(step_).task);
    });
    return make_plan(project_.build / "bin" / "replay", request, folder, options_.servers);
  }

  const Project& project_;
  const Course& course_;
  const Step& step_;
  const CheckOptions& options_;
  const Submission submission_;
  const uint64_t seed_;
  fs::path program_;
  std::vector<Unjudged> unjudged_;
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
