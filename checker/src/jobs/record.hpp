#pragma once
/// Reads what Slurm tells about a job.
#include <filesystem>
#include <string>
#include <string_view>

namespace checker {

struct JobRecord {
  std::string state;             ///< Slurm's word: PENDING, RUNNING, COMPLETED ...
  std::string reason;            ///< Slurm's word for why it is in that state; empty: none
  std::string nodes;             ///< "n[1-2]"; empty before it has any
  int nodes_asked = 0;           ///< at least so many; 0: not known
  std::string exit_code;         ///< "0:0": the status, and the signal
  int restarts = 0;              ///< how often it was queued again
  std::filesystem::path output;  ///< where its standard output goes

  /// It does not come back by itself.
  bool is_over() const;
};

/// From what `scontrol show job N` prints.
JobRecord parse_job_record(std::string_view text);

/// What a state or a reason means, for those that make people wait or wonder; empty for others.
std::string_view meaning_of(std::string_view word);

}  // namespace checker
