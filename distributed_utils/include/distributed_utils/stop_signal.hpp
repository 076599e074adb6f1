#pragma once
/// Being told to stop: a signal that reaches any rank stops all of them after the same step.
#include <cstdint>
#include <memory>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// While it lives, SIGUSR1 and SIGTERM ask the run to stop instead of ending the process. Slurm
/// sends the first some time before a job's limit (sbatch --signal) and the second when the job is
/// cancelled or must make room; torchrun passes SIGTERM on.
///
/// Ranks are signalled at different moments, or not all of them. But all must stop after the same
/// step, or those that go on wait in a collective for ever. So every step they reduce, with MAX,
/// who was told. That all-reduce (of one number, on the CPU where the group can) runs beside the
/// next step, whose end reads it: nobody waits for it, and the answer comes a step late. From a GPU
/// it comes two steps late, because the host runs ahead of it.
class StopSignal {
 public:
  /// group: empty: the world, or this rank alone without setup().
  explicit StopSignal(const Group& group = {});
  /// Puts back what the signals did before.
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
