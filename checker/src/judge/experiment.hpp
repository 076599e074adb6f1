#pragma once
/// Runs a program at several worlds, recorded.
#include <filesystem>
#include <string>
#include <vector>

#include "box/box.hpp"
#include "evidence/run.hpp"
#include "judge/watchdog.hpp"
#include "process/fork_server.hpp"

namespace checker {

struct Experiment {
  std::filesystem::path program;
  std::filesystem::path folder;  ///< gets a folder world-N for each world, see evidence/folders.hpp
  std::vector<std::string> options;
  std::vector<std::filesystem::path> reads;  ///< what it reads beside its own folder
  bool trains = true;                        ///< a trainer, which is told where to write: --output
  std::vector<std::vector<RankPlace>> worlds;  ///< the places of each one's ranks
  uint64_t seed = 0;                           ///< of the numbers that a plain program's ranks have
  /// The library file_shim. If it is given, all ranks run in one folder, as on a cluster, and it
  /// tells which of them changed which file. Else each has a folder of its own.
  std::filesystem::path file_shim;
  bool on_gpus = false;
  Holding holding = Holding::parameters;  ///< what optimizers may hold
  const Box* box = nullptr;               ///< where the ranks are shut in, if they are
  /// The ranks are forked from the program's, if it has one. May be null.
  ForkServers* servers = nullptr;
};

struct RecordedRun {
  Run run;
  Stall stall = Stall::none;
  std::filesystem::path folder;
};

/// All worlds side by side, in the order of experiment.worlds. Whatever the program does, no
/// process of it is left.
std::vector<RecordedRun> run_experiment(const Experiment& experiment);

}  // namespace checker
