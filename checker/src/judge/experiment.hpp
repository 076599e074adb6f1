#pragma once
/// Runs a program at several worlds, recorded, each rank in a folder of its own.
#include <filesystem>
#include <string>
#include <vector>

#include "evidence/run.hpp"
#include "judge/watchdog.hpp"

namespace checker {

struct Experiment {
  std::filesystem::path program;
  std::filesystem::path folder;  ///< gets world-N/rank-R and world-N/log-R
  std::vector<std::string> options;
  std::vector<int> worlds;
  bool pretend_nodes = true;  ///< a world of three has local ranks 0, 1, 0
};

struct Trial {
  Run run;
  Stall stall = Stall::none;
  std::filesystem::path folder;
};

/// All worlds side by side, in the order of experiment.worlds. Whatever the program does, no
/// process of it is left.
std::vector<Trial> run_experiment(const Experiment& experiment);

}  // namespace checker
