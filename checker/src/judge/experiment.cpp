#include "judge/experiment.hpp"

#include <algorithm>
#include <list>

#include "evidence/files.hpp"
#include "evidence/folders.hpp"
#include "instrumentation/numbers.hpp"
#include "process/trainer.hpp"
#include "support/error.hpp"

namespace checker {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kLogBytes = 256U << 20;  // sparse: only what is recorded takes space
constexpr uint64_t kLargestFile = 64U << 20;
constexpr const char* kMeeting = "meet";  // of the ranks of a world, at a file in this folder
constexpr size_t kLines = 4000, kLineBytes = 2000;

Command rank_command(const Experiment& experiment, const fs::path& folder, const RankPlace& place) {
  Command command;
  command.arguments = {experiment.program.string()};
  command.arguments.insert(command.arguments.end(), experiment.options.begin(),
                           experiment.options.end());
  if (experiment.trains) {
    command.arguments.insert(command.arguments.end(), {"--output", kOutputFolder});
  }
  command.environment = rank_environment(place, folder / kMeeting / "store");
  command.environment.insert(command.environment.end(),
                             {"WORLDSIZE_RECORD=" + log_of(folder, place.rank).string(),
                              "WORLDSIZE_CACHE=" + cache_of(folder, place.node).string(),
                              "GLOO_SOCKET_IFNAME=lo", "OMP_NUM_THREADS=1", "NO_COLOR=1"});
  if (experiment.holding == Holding::parameters_or_pieces) {
    command.environment.emplace_back("WORLDSIZE_FINGERPRINTS=1");
  }
  if (!experiment.trains) {
    command.environment.push_back(std::string(instrumentation::kNumbersSeed) + "=" +
                                  std::to_string(experiment.seed));
  }
  command.directory = folder_of(folder, place.rank);
  if (!experiment.file_shim.empty()) {
    command.environment.insert(command.environment.end(),
                               {"LD_PRELOAD=" + experiment.file_shim.string(),
                                "WORLDSIZE_FILES=" + command.directory.string()});
  }
  command.largest_file = kLargestFile;
  return command;
}

// A rank sees its folder and its own log, where all of them meet, the program and what it reads.
Command boxed(const Experiment& experiment, const fs::path& folder, const Command& command,
              const RankPlace& place) {
  auto read_only = experiment.reads;
  read_only.push_back(experiment.program);
  const Mounts mounts{.read_only = std::move(read_only),
                      .writable = {command.directory, log_of(folder, place.rank), folder / kMeeting,
                                   cache_of(folder, place.node)},
                      .scratch = folder / "scratch"};
  for (const auto& path : mounts.writable) experiment.box->hand_over(path);
  experiment.box->hand_over(mounts.scratch);
  auto limits = experiment.box->limits();
  limits.file = std::min(limits.file, kLargestFile);
  return experiment.box->wrap(command, mounts, limits);
}

// Where the ranks of all worlds stand in one row.
class Row {
 public:
  explicit Row(const Experiment& experiment)
      : boxed_(experiment.box != nullptr), holding_(experiment.holding) {
    for (const auto& world : experiment.worlds) {
      auto& recorded = runs_.emplace_back();
      recorded.folder = experiment.folder / ("world-" + std::to_string(world.size()));
      recorded.run.world = world.size();
      recorded.run.ranks.resize(recorded.run.world);
      std::vector<fs::path> logs;
      auto& commands = commands_.emplace_back();
      fs::create_directories(recorded.folder / kMeeting);
      if (!experiment.file_shim.empty()) {
        fs::create_directories(shared_folder_of(recorded.folder));
      }
      for (size_t rank = 0; rank < recorded.run.world; ++rank) {
        commands.push_back(rank_command(experiment, recorded.folder, world[rank]));
        fs::create_directories(commands.back().directory);
        fs::create_directories(cache_of(recorded.folder, world[rank].node));
        logs.push_back(log_of(recorded.folder, rank));
        make_log(logs.back(), kLogBytes);
        recorded.run.ranks[rank].folder = commands.back().directory;
        recorded.run.ranks[rank].place = world[rank];
        if (experiment.box) {
          commands.back() = boxed(experiment, recorded.folder, commands.back(), world[rank]);
        } else if (experiment.servers) {
          commands.back().server = experiment.servers->of(experiment.program);
        }
        places_.emplace_back(runs_.size() - 1, rank);
      }
      watchdogs_.emplace_back(logs, experiment.on_gpus);
    }
  }

  std::vector<RecordedRun> run() {
    RankOptions options;
    options.grace = std::chrono::milliseconds(500);
    options.on_line = [&](size_t rank, bool is_error, std::string_view line) {
      watchdog(places_[rank].first).line();
      auto& seen = runs_[places_[rank].first].run.ranks[places_[rank].second];
      auto& lines = is_error ? seen.errors : seen.output;
      if (lines.size() < kLines) {
        lines.emplace_back(line.substr(0, kLineBytes));
      } else if (!is_error) {
        ++seen.lines_left_out;
      }
      return true;
    };
    options.on_start = [&](size_t rank, pid_t pid) { watchdog(places_[rank].first).add(pid); };
    options.stop = [&](size_t group) {
      runs_[group].stall = watchdog(group).look();
      return runs_[group].stall != Stall::none;
    };
    const auto begin = Watchdog::Clock::now();
    const auto results = run_groups(commands_, options);
    for (size_t i = 0; i < runs_.size(); ++i) finish(runs_[i], results[i]);
    const std::chrono::duration<double> time = Watchdog::Clock::now() - begin;
    for (auto& recorded : runs_) recorded.run.seconds = time.count();
    for (const auto& result : results) {
      if (result.interrupted_by) throw Error("Interrupted.");
    }
    return std::move(runs_);
  }

 private:
  Watchdog& watchdog(size_t group) {
    return *std::next(watchdogs_.begin(), static_cast<std::ptrdiff_t>(group));
  }

  void finish(RecordedRun& recorded, const GroupResult& result) const {
    recorded.run.result = result;
    for (size_t rank = 0; rank < recorded.run.ranks.size(); ++rank) {
      auto& seen = recorded.run.ranks[rank];
      seen.result = result.ranks[rank];
      if (boxed_) seen.result.exit = outcome_in_box(seen.result.exit);
      seen.log = read_log(log_of(recorded.folder, rank));
      interpret(seen, holding_);
    }
    tell_files(recorded.run, recorded.folder);
  }

  bool boxed_;
  Holding holding_;
  std::vector<RecordedRun> runs_;
  std::list<Watchdog> watchdogs_;
  std::vector<std::vector<Command>> commands_;
  std::vector<std::pair<size_t, size_t>> places_;  // of each rank: its recorded, its number there
};

}  // namespace

std::vector<RecordedRun> run_experiment(const Experiment& experiment) {
  return Row(experiment).run();
}

}  // namespace checker
