#pragma once
/// Checkpointing: the options --checkpoint-every and --resume, with which a run survives its time
/// limit.
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "distributed_utils/grad_scaler.hpp"
#include "distributed_utils/sampler.hpp"
#include "tasks/options.hpp"
#include "tasks/progress.hpp"

namespace tasks {

/// The run was told to stop (SIGUSR1 or SIGTERM) and is saved. No failure: see report().
class Stopped : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Saves all that a trainer's run is, now and then and when a signal says that its time is up, into
/// <output>/checkpoints; and puts a run back there. Resumed, it goes on bit for bit as if it had
/// never stopped, on as many ranks as before; on more or fewer it goes on with the same samples.
/// Every rank makes one and calls the same of its functions. Without both options it does nothing.
class Checkpointing {
 public:
  /// Reads the newest checkpoint if there is one and --resume asks for it. Throws
  /// distributed_utils' Error for one that is damaged.
  explicit Checkpointing(const Options& options);
  ~Checkpointing();
  Checkpointing(const Checkpointing&) = delete;
  Checkpointing& operator=(const Checkpointing&) = delete;

  /// For DistributedDataParallelOptions: the resumed run's ranks add up gradients in the same
  /// order.
  std::vector<std::vector<size_t>> bucket_indices() const;

  /// Puts everything into the state that was saved, which includes the random generators: call it
  /// last before the loop. Returns the epoch, from 0, in which to go on. All arguments are kept and
  /// read whenever a checkpoint is saved. Throws Error if the checkpoint is of a run with another
  /// seed or other data.
  int64_t restore(torch::nn::Module& model, torch::optim::Optimizer& optimizer, Schedule& schedule,
                  distributed_utils::DistributedSampler& sampler, Progress& progress, Score& best);

  /// From now on checkpoints hold the scaler's state, too. A resumed run's scaler becomes what it
  /// was when the run was saved; where the run had none, it stays as it is. To be called before
  /// restore(), and on all ranks; `scaler` is kept. Only for trainers that scale their loss.
  void keep(distributed_utils::GradScaler& scaler);

  /// What to add the epoch's Loss::totals() to: the task's no_totals(); where an epoch is resumed
  /// in its midst, what was added up before.
  torch::Tensor begin_epoch(const torch::Tensor& no_totals);

  /// After every optimizer step but the run's last: saves, if it is time. A save that fails is
  /// told on stderr and the run goes on. Throws Stopped, on all ranks after the same step, if a
  /// signal asked for it and all is saved.
  void step(const torch::Tensor& totals);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tasks
