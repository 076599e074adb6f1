#pragma once
#include <torch/types.h>

#include <functional>
#include <memory>

#include "tasks/options.hpp"

namespace tasks::graph {

/// Work that a device can repeat without the host.
class Graph {
 public:
  using Work = std::function<void()>;

  virtual ~Graph() = default;
  /// Takes down what `work` enqueues; the device runs none of it yet.
  virtual void capture(const Work& work) = 0;
  /// The device runs what was captured. work: the same again.
  virtual void replay(const Work& work) = 0;
  /// Whether the host ran `work` while it was captured, so that only the device is behind.
  virtual bool host_runs_capture() const = 0;
};

/// Where graphs can be had: on a GPU. On a CPU, where the environment says
/// WORLDSIZE_GRAPH_STAND_IN=1, something that runs the work each time: tests of all that is around
/// a graph need no GPU.
bool can_capture(torch::Device device);

/// Throws std::logic_error where can_capture() says no. first: an older graph, or null. Both share
/// their memory, which is theirs alone: what one leaves in it, the other may overwrite.
std::unique_ptr<Graph> new_graph(torch::Device device, const Graph* first = nullptr);

/// Nothing can be captured on a GPU's default stream. In a process whose options ask for graphs,
/// leave_default_stream() makes another one current, for good: to be called when the process has
/// its GPU, and before a model or a DistributedDataParallel is made, which remember their streams.
void remember(const Options& options);
void leave_default_stream();

}  // namespace tasks::graph
