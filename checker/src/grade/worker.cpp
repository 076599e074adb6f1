#include "grade/worker.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "box/box.hpp"
#include "box/enclosure.hpp"
#include "course/render.hpp"
#include "grade/gather.hpp"
#include "judge/check.hpp"
#include "process/capture.hpp"
#include "report/json.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"
#include "terminal/terminal.hpp"

namespace checker::grade {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace std::chrono_literals;

namespace {

constexpr uint64_t kMegabyte = 1U << 20;
constexpr uint64_t kProcesses = 800;  // and threads: two nodes of four ranks, and their Slurm
constexpr auto kPatience = 60s;
constexpr BoxLimits kUnpacking{
    .memory = 1ULL << 30, .processes = 20, .file = 2 * kMegabyte, .processor_seconds = 50};

// What programs leave behind, what they are built in, and what the replay writes do not take each
// other's space.
struct Quotas {
  LimitedFolder runs, build, replay;

  // times: 1, but where limits do not hold.
  Quotas(const fs::path& folder, uint64_t times)
      : runs(folder / "runs", times * 1024 * kMegabyte, times * 20'000),
        build(folder / "build", times * 512 * kMegabyte, times * 1'000),
        replay(folder / "runs" / "replay", times * 256 * kMegabyte, times * 1'000) {}
};

class Worker {
 public:
  Worker(const Project& project, const Task& task, const Box* box)
      : project_(project),
        task_(task),
        course_(load_course(project.chapters())),
        recipe_(recipe_of(project)),
        box_(box) {
    for (const auto& step : course_.steps) {
      if (!step.todos.empty() && !step.is_beside()) steps_.push_back(graded(step));
    }
  }

  bool run() {
    try {
      gather();
    } catch (const Unreadable& error) {
      say({{"finished", true}, {"problem", std::string("It cannot be read. ") + error.what()}});
      return true;
    }
    bool all = true;
    for (const auto& step : course_.steps) {
      if (std::ranges::find(task_.done, step.name) != task_.done.end()) continue;
      if (gathered_.steps.contains(step.name)) all = judge(step) && all;
    }
    if (all) say({{"finished", true}});
    return all;
  }

 private:
  void say(const json& what) const {
    task_.say(what.dump(-1, ' ', false, json::error_handler_t::replace));
  }

  void gather() {
    if (!task_.archive) {
      gathered_ = gather_folder(task_.hand_in.string(), steps_);
    } else if (!box_) {
      gathered_ = gather_archive(task_.hand_in.string(), steps_);
    } else {
      gathered_ = gather_boxed();
    }
    say({{"gathered", {{"remarks", gathered_.remarks}, {"version", gathered_.version}}}});
  }

  // This very program reads the archive, shut in; what comes of it is read as any folder is.
  Gathered gather_boxed() const {
    const LimitedFolder room(task_.work / "unpacked", 64 * kMegabyte, 1'000);
    const auto unpacked = room.path() / "files";
    const auto program = project_.build / "bin" / "checker";
    Command command{.arguments = {program.string(), "unpack-hand-in", task_.hand_in.string(),
                                  unpacked.string()},
                    .environment = {},
                    .directory = {}};
    std::vector<std::string> words;  // "02_setup/train.cpp"
    for (const auto& step : steps_) {
      for (const auto& file : step.files) words.push_back(step.name + "/" + file);
    }
    command.arguments.insert(command.arguments.end(), words.begin(), words.end());
    box_->hand_over(unpacked);
    const auto ended = capture(
        box_->wrap(command,
                   {.read_only = {program, project_.build / "CMakeCache.txt", task_.hand_in},
                    .writable = {unpacked},
                    .scratch = {}},
                   kUnpacking),
        kPatience);
    if (ended.interrupted_by) throw Error("Interrupted.");
    if (ended.out_of_time) throw Unreadable("Unpacking takes longer than a minute.");
    if (!ended.success()) throw Unreadable(reason(ended.output));
    auto gathered = gather_folder(unpacked.string(), steps_);
    for (const auto& line : split_lines(read_file(unpacked / kRemarksFile))) {
      gathered.remarks.push_back(line);
    }
    return gathered;
  }

  static std::string reason(const std::string& output) {
    const auto lines = split_lines(output);
    if (lines.empty()) return "Unpacking it needs too much memory or time.";
    const std::string_view last = lines.back(), mark = "error: ";
    return std::string(last.starts_with(mark) ? last.substr(mark.size()) : last);
  }

  GradedStep graded(const Step& step) const {
    GradedStep graded{.name = step.name, .files = {}};
    for (const auto* file : course_.files_of(step)) {
      if (file->kind != FileKind::job) graded.files.push_back(file->name);
    }
    return graded;
  }

  // The program's files. One without TODOs need not be handed in.
  std::vector<NamedText> program_of(const Step& step, StepFiles& files) const {
    std::vector<NamedText> texts;
    for (const auto* file : course_.files_of(step)) {
      if (file->kind == FileKind::job) continue;
      auto& text = files.program[file->name];
      if (text.empty() && !course_.edits(step, *file)) {
        text = render(course_, *file, step, Rendering::solution);
      }
      texts.push_back({file->name, text});
    }
    return texts;
  }

  bool judge(const Step& step) const try {
    const auto place = task_.work / step.label();
    std::optional<Quotas> quotas;
    if (box_) quotas.emplace(place, task_.protections.limits ? 1 : 10);
    fs::create_directories(place / "runs");
    auto files = gathered_.steps.at(step.name);
    const BuildRequest request{.files = program_of(step, files),
                               .shown = "steps/" + step.name,
                               .folder = place / "build",
                               .programs = task_.programs,
                               .limits = task_.building};
    if (const auto* job = course_.job_of(step)) files.program[job->name] = files.job;
    const HandIn hand_in{.files = files.program, .folder = request.folder, .build = [&] {
                           return build_hand_in(project_, recipe_, request, box_);
                         }};
    CheckOptions options;
    options.hand_in = &hand_in;
    options.box = box_;
    options.worlds = task_.worlds;
    options.plans = kPlans;
    options.keep = (place / "runs").string();
    options.on_stage = [&](std::string_view stage) {
      say({{"stage", step.label() + " " + std::string(stage)}});
    };
    const auto report = check_step(project_, course_, step, options);
    task_.say("{\"report\":" + to_json(report) + "}");
    return true;
  } catch (const Error& error) {
    terminal::complain(step.name + ": " + error.what());
    return false;
  }

  const Project& project_;
  const Task& task_;
  const Course course_;
  const Recipe recipe_;
  const Box* box_;
  std::vector<GradedStep> steps_;  // those with TODOs
  Gathered gathered_;
};

}  // namespace

bool work_on(const Project& project, const Task& task) {
  if (task.unsafe) return Worker(project, task, nullptr).run();
  const auto group = ControlGroup::make(task.memory, kProcesses);
  enclose(task.protections.network);
  auto hidden = task.hidden;
  hidden.insert(hidden.end(), {project.source, project.build});
  const Box box({.system = system_of(project),
                 .hidden = hidden,
                 .user = task.user,
                 .limits = task.running,
                 .group = group.get(),
                 .protections = task.protections});
  // From here on, whatever fails in the box is what was handed in.
  if (const auto why = box.refuses()) throw Error(*why);
  return Worker(project, task, &box).run();
}

}  // namespace checker::grade
