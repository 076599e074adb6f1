#pragma once
#include <torch/optim/optimizer.h>

#include "tasks/step_graph.hpp"

namespace tasks::graph {

/// Why steps cannot be repeated by a graph. The greater one is told where several apply, on one
/// rank or on several.
enum class Obstacle : int64_t {
  none,
  no_device,      ///< losses are on a device that captures nothing
  reads,          ///< the host reads a value of the GPU
  accumulates,    ///< an optimizer steps not once in each step, but more often or less
  host_optimizer  ///< the optimizer keeps on the host what changes from step to step
};

/// In the words of a line that says that steps run as they are.
const char* in_words(Obstacle obstacle);

/// Watches the step that this thread takes, while it lives.
class WatchedStep {
 public:
  WatchedStep();
  ~WatchedStep();
  WatchedStep(const WatchedStep&) = delete;
  WatchedStep& operator=(const WatchedStep&) = delete;

  Obstacle obstacle() const;
  /// The one that stepped; null: none that is Replayable.
  Replayable* optimizer() const { return optimizer_; }

  /// To be called at an optimizer's step. Does nothing while no step is watched.
  static void note_step(const torch::optim::Optimizer& optimizer);

 private:
  class Reads;

  int steps_ = 0;
  bool unknown_ = false;
  Replayable* optimizer_ = nullptr;
  std::unique_ptr<Reads> reads_;
};

}  // namespace tasks::graph
