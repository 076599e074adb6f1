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
  /// A graph is about to repeat a step. What the host may have changed goes to the GPU: learning
  /// rates.
  virtual void before_replay() = 0;
  /// A graph has repeated one step: what the host keeps of it follows.
  virtual void replayed() = 0;
};

/// Takes the steps of a training loop. With --fast=graph on a GPU it captures steps and repeats
/// them; https://docs.nvidia.com/cuda/cuda-programming-guide, "CUDA Graphs", says what that is.
///
/// The first steps run as they are, and are watched. Then all ranks agree whether a graph can
/// repeat what they did: one step of one Replayable optimizer, and no value of the GPU that the
/// host reads. If not, all later steps run as they are, and rank 0 says why. Each shape of batches
/// gets a graph of its own when it has been seen a few times; batches of rare shapes run as they
/// are. While the process records for the checker, there is no graph.
///
/// A graph repeats what the GPU did, with the same tensors. What the host does in a step, it does
/// only while the step is captured.
class StepGraph {
 public:
  /// One step, from zero_grad() to the optimizer's step(), from batch to loss.
  using Step = std::function<Loss(const Batch& batch)>;

  explicit StepGraph(const Options& options);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  /// Takes a step. Every rank takes the same number of steps. Throws Error if a step cannot be
  /// captured although nothing in the watched ones said so.
  Loss take(const Batch& batch, const Step& step);

  /// How many steps a graph has repeated.
  int64_t replays() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace tasks
