#pragma once
/// A whole training step as one CUDA graph: the host enqueues one thing instead of hundreds of
/// kernels, which takes it longer than a fast GPU takes to run them.
#include <functional>
#include <memory>

#include "tasks/options.hpp"
#include "tasks/task.hpp"

namespace tasks {

/// An optimizer whose steps a graph can repeat: whatever changes from step to step is on the GPU.
struct Replayable {
  virtual ~Replayable() = default;
  /// A graph has repeated one step: what the host keeps of it follows.
  virtual void replayed() = 0;
};

/// Runs the steps of a training loop; with --fast=graph it captures one of them and repeats that.
/// Until then, and where there can be no graph (on CPUs, while recording or monitoring, for batches
/// of another shape), steps run as they are. All of a step must be on the GPU: whoever looks at a
/// value on the host (item()) ends the program with torch's error. Learning rates are those of the
/// captured step.
class StepGraph {
 public:
  /// One step, from zero_grad() to the optimizer's step(), on a batch that is on its device.
  using Step = std::function<Loss(const Batch& batch)>;

  /// optimizer: that of the steps. Both are kept.
  StepGraph(const Options& options, torch::optim::Optimizer& optimizer, Step step);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Makes another stream than the default one current, for good, if --fast=graph asks for it:
  /// nothing can be captured on the default one. To be called before DistributedDataParallel is
  /// made, which remembers its stream.
  static void prepare(const Options& options, torch::Device device);

  /// Takes a step. The loss's sum is overwritten by the next one.
  Loss operator()(const Batch& batch, torch::Device device);

  /// True from the captured step on.
  bool captured() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tasks
