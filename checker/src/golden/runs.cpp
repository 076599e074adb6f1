#include "golden/runs.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "evidence/log.hpp"
#include "process/trainer.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker::golden {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kLogBytes = 256U << 20;  // sparse: only what is recorded takes space
constexpr const char* kOutput = "output";   // in the folder in which a rank runs
constexpr size_t kLines = 200;

struct Trial {
  std::string name;  // "01 fp32"
  std::string precision;
  fs::path program, folder;
  size_t world = 1;
  bool one_folder = false;
  std::vector<std::vector<std::string>> lines, errors;  // of each rank

  fs::path log(size_t rank) const { return folder / ("log-" + std::to_string(rank)); }
  fs::path place(size_t rank) const {
    return folder / ("rank-" + std::to_string(one_folder ? 0 : rank));
  }
  bool may_write_parameters(size_t rank) const { return rank == 0 || !one_folder; }
};

std::vector<Trial> make_trials(std::span<const Solution> programs, const fs::path& folder) {
  std::vector<Trial> trials;
  for (const auto& program : programs) {
    for (const std::string precision : {"fp32", "fp64"}) {
      for (const size_t world : {1, 2}) {
        auto& trial = trials.emplace_back();
        trial.name = program.target.substr(program.target.find('_') + 1) + " " + precision;
        trial.precision = precision;
        trial.program = program.file;
        trial.folder = folder / std::to_string(trials.size());
        trial.world = world;
        trial.one_folder = program.one_folder;
        trial.lines.resize(world);
        trial.errors.resize(world);
      }
    }
  }
  return trials;
}

// The ranks of a trial, each with a log of its own.
std::vector<Command> commands_of(const Trial& trial, const fs::path& config) {
  const TrainerRun run{.program = trial.program,
                       .world_size = trial.world,
                       .arguments = {"--config", config.string(), "--device", "cpu", "--precision",
                                     trial.precision, "--max-steps", std::to_string(kSteps),
                                     "--seed", "1", "--deterministic", "--output", kOutput},
                       .store = trial.folder / "store"};
  auto commands = rank_commands(run);
  for (size_t rank = 0; rank < commands.size(); ++rank) {
    auto& command = commands[rank];
    command.directory = trial.place(rank);
    fs::create_directories(command.directory);
    make_log(trial.log(rank), kLogBytes);
    // The threads decide in which order sums are added up; whoever sets them means other runs.
    std::erase_if(command.environment,
                  [](const auto& entry) { return entry.starts_with("OMP_NUM_THREADS="); });
    command.environment.insert(command.environment.end(),
                               {"WORLDSIZE_RECORD=" + trial.log(rank).string(), "OMP_NUM_THREADS=1",
                                "GLOO_SOCKET_IFNAME=lo", "NO_COLOR=1"});
  }
  return commands;
}

std::string hash_of_parameters(const fs::path& folder) {
  for (const auto* name : {"model-final.pt", "model-final.safetensors"}) {
    if (fs::exists(folder / name)) return fingerprint(read_file(folder / name));
  }
  return "none";
}

// Nothing that could not be read is taken for a result.
Left left_by(const Trial& trial, size_t rank) {
  Left left{.printed = losses_in(trial.lines[rank])};
  left.result.parameters =
      trial.may_write_parameters(rank) ? hash_of_parameters(trial.place(rank) / kOutput) : "none";
  const auto log = read_log(trial.log(rank));
  std::string batches;
  size_t steps = 0;
  for (const auto& event : log.events) {
    if (event.kind == Kind::loss) batches += event.payload;
    if (event.kind == Kind::gradients) ++steps;
    if (event.kind != Kind::reported) continue;
    if (const auto loss = event.head<double>()) left.result.losses.push_back(*loss);
  }
  // Two an epoch and the test's. Trainers of earlier commits reported the best one again before it.
  auto& losses = left.result.losses;
  if (losses.size() % 2 == 0 && !losses.empty()) losses.erase(losses.end() - 2);
  left.result.batches = fingerprint(batches);
  left.recorded = !log.broken && log.dropped == 0 && steps == kSteps && !left.result.losses.empty();
  return left;
}

void check(const Trial& trial, const GroupResult& result) {
  if (result.interrupted_by) throw Error("Interrupted.");
  if (result.success()) return;
  const size_t rank = result.first_failed.value_or(0);
  std::string said;
  for (const auto& line : trial.errors[rank]) said += "\n" + line;
  throw Error(trial.program.string() + " (" + trial.precision + ", " +
              count_of(trial.world, "rank") + "): " + describe_failure(result) + said);
}

}  // namespace

std::vector<double> losses_in(std::span<const std::string> lines) {
  std::vector<double> losses;
  for (const auto& line : lines) {
    for (auto at = line.find("loss"); at != line.npos; at = line.find("loss", at + 1)) {
      const char* begin =
          line.c_str() + std::min(line.find_first_not_of(": ", at + 4), line.size());
      char* end = nullptr;
      const double loss = std::strtod(begin, &end);
      if (end != begin) losses.push_back(loss);
    }
  }
  return losses;
}

AllLeft run_solutions(std::span<const Solution> programs, const fs::path& config,
                      const std::function<void(size_t, size_t)>& on_progress) {
  const TemporaryFolder folder;
  auto trials = make_trials(programs, folder.path());
  std::vector<std::vector<Command>> commands;
  std::vector<std::pair<Trial*, size_t>> places;  // of each rank: its trial, its number there
  for (auto& trial : trials) {
    commands.push_back(commands_of(trial, config));
    for (size_t rank = 0; rank < trial.world; ++rank) places.emplace_back(&trial, rank);
  }
  RankOptions options;
  options.width = std::max(1U, std::thread::hardware_concurrency());
  options.on_start = [&, begun = size_t{0}](size_t, pid_t) mutable {
    if (on_progress) on_progress(++begun, places.size());
  };
  options.on_line = [&](size_t place, bool is_error, std::string_view line) {
    auto& [trial, rank] = places[place];
    auto& lines = is_error ? trial->errors[rank] : trial->lines[rank];
    if (lines.size() < kLines) lines.emplace_back(line);
    return true;
  };
  const auto results = run_groups(commands, options);
  AllLeft all;
  for (size_t i = 0; i < trials.size(); ++i) {
    check(trials[i], results[i]);
    for (size_t rank = 0; rank < trials[i].world; ++rank) {
      const auto name = trials[i].name + " rank " + std::to_string(rank) + " of " +
                        std::to_string(trials[i].world);
      all[name] = left_by(trials[i], rank);
    }
  }
  return all;
}

bool all_recorded(const AllLeft& left) {
  return std::ranges::all_of(left, [](const auto& entry) { return entry.second.recorded; });
}

Results recorded_results(const AllLeft& left) {
  Results results;
  for (const auto& [name, one] : left) results[name] = one.result;
  return results;
}

Results printed_results(const AllLeft& left) {
  Results results;
  for (const auto& [name, one] : left) {
    results[name] = {.parameters = one.result.parameters, .batches = "", .losses = one.printed};
  }
  return results;
}

}  // namespace checker::golden
