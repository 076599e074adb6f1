#pragma once
#include <memory>
#include <optional>
#include <vector>

#include "graph/graph.hpp"
#include "tasks/step_graph.hpp"

namespace tasks::graph {

/// What decides which batches one graph serves.
struct Shape {
  std::vector<std::vector<int64_t>> sizes;
  std::vector<torch::Dtype> types;
  std::optional<int64_t> targets;  ///< none: it serves batches of any number of targets

  explicit Shape(const Batch& batch, bool counted);
  auto operator<=>(const Shape&) const = default;
};

/// A step for batches of one shape: what its graph reads and what it writes.
class CapturedStep {
 public:
  /// first: copied to `device`; later batches are copied over it. counted: all of them have as many
  /// targets as it has. Otherwise the graph reads their number, and the step must not take it from
  /// the host. older: another one, or null, with which it shares memory.
  CapturedStep(const Batch& first, torch::Device device, bool counted, const CapturedStep* older);

  /// Captures the step. The device runs nothing.
  void capture(const StepGraph::Step& step, Replayable& optimizer);
  /// Captured and not yet run.
  bool is_new() const { return fresh_; }
  /// Takes one on the next batch; of the constructor's, if it follows capture().
  Loss replay(const Batch& next, const StepGraph::Step& step, Replayable& optimizer);

 private:
  void refill(const Batch& next);

  Batch batch_;
  torch::Tensor count_;  ///< of batch_'s targets; undefined if it never changes
  Loss loss_;
  std::unique_ptr<Graph> graph_;
  bool fresh_ = false;
};

}  // namespace tasks::graph
