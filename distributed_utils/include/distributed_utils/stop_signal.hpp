#pragma once
/// StopSignal stops a run cleanly: a signal that reaches any rank stops all ranks after the same
/// step, so that they can save.
#include <cstdint>
#include <memory>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// While it lives, SIGUSR1 and SIGTERM ask the run to stop instead of ending the process. Slurm
/// sends the first some time before a job's limit (sbatch --signal) and the second when the job is
/// cancelled or must make room; torchrun passes SIGTERM on.
///
/// Ranks get the signal at different moments, or only some get it. But all must stop after the same
/// step, or the others wait in a collective forever. So in every step the ranks reduce, with MAX,
/// whether they got it. That all-reduce (of one number, on the CPU if the group can) runs during
/// the next step, whose end reads the result. No rank waits for it, and the answer comes one step
/// late. On a GPU it comes two steps late, because the host runs ahead.
class StopSignal {
 public:
  /// group: empty: the world, or this rank alone without setup().
  explicit StopSignal(const Group& group = {});
  /// Restores the former signal handlers.
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Every rank calls it after every optimizer step. True on all ranks after the same step, at most
  /// three after the first rank was told.
  bool after_step();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace distributed_utils
