#pragma once
/// What a job script did when it ran under a Slurm: the evidence that rules of job scripts look at.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "jobs/torchrun_call.hpp"

namespace checker {

/// How far a job came that was told that its time is nearly up.
enum class AfterSignal {
  untried,         ///< it was not told
  not_ready,       ///< its ranks did not start, or not again
  launcher_lost,   ///< the signal ended what the ranks run under, while they saved
  script_over,     ///< the script ended while ranks ran
  ranks_not_told,  ///< the ranks trained on as if nothing had happened
  goes_on,         ///< all ranks have stopped, and the job goes on
  ended,           ///< it ended for good
  held,            ///< it was queued again, but is held there
  queued_again,    ///< as it should be
};

/// One start of a trainer, or of torchrun, with what it was told.
struct StartSeen {
  std::string host;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::filesystem::path log;  ///< a trainer's recording; empty for torchrun
  bool told = false;          ///< a rank that got SIGUSR1
  std::string lost{};         ///< what the signal ended above this rank, while it saved

  /// A variable; empty if it is not set.
  std::string variable(const std::string& name) const;
  /// Of torchrun: what it was told.
  TorchrunCall call() const { return parse_torchrun(arguments, environment); }
};

/// What Slurm says of a job in the end.
struct JobEnd {
  std::string refused;       ///< what sbatch said if it did not take the script
  std::string state;         ///< Slurm's word: COMPLETED, FAILED, PENDING ...
  std::string reason;        ///< Slurm's word for a job that waits
  bool out_of_time = false;  ///< it did not end in time, so we ended it
  int nodes_asked = 0;       ///< at least so many; 0: not known
  std::string exit_code;     ///< "0:10": ended by signal 10
  int restarts = 0;          ///< how often it was queued again
  AfterSignal after_signal = AfterSignal::untried;
  std::vector<std::string> hosts;  ///< its nodes, in Slurm's order

  bool completed() const { return state == "COMPLETED"; }
};

struct JobSeen : JobEnd {
  std::vector<std::string> output;   ///< lines of all its files *.out, in the submit folder
  std::vector<StartSeen> launchers;  ///< torchrun
  std::vector<StartSeen> trainers;
};

}  // namespace checker
