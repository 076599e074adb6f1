#pragma once
/// What a job script did when it ran under a Slurm: the evidence that rules of job scripts look at.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace checker {

/// One start of a trainer, or of torchrun, with what it was told.
struct StartSeen {
  std::string host;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::filesystem::path log;  ///< a trainer's recording; empty for torchrun

  /// A variable; empty if it is not set.
  std::string variable(const std::string& name) const;
  /// The value of --name=value or --name value, - and _ alike; empty if it is not given.
  std::string option(const std::string& name) const;
};

/// What Slurm says of a job in the end.
struct JobEnd {
  std::string refused;             ///< what sbatch said if it did not take the script
  std::string state;               ///< Slurm's word: COMPLETED, FAILED, PENDING ...
  std::string reason;              ///< Slurm's word for a job that waits
  bool out_of_time = false;        ///< it did not come to an end, so we ended it
  std::vector<std::string> hosts;  ///< its nodes, in Slurm's order

  bool completed() const { return state == "COMPLETED"; }
};

struct JobSeen : JobEnd {
  std::vector<std::string> output;   ///< lines of all its files *.out, in the submit folder
  std::vector<StartSeen> launchers;  ///< torchrun
  std::vector<StartSeen> trainers;
};

}  // namespace checker
