#include "tasks/step_graph.hpp"

#include <algorithm>
#include <optional>

#ifdef USE_CUDA
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAStream.h>
#endif

#include "instrumentation/monitoring.hpp"
#include "instrumentation/recording.hpp"

namespace tasks {

#ifdef USE_CUDA
namespace {

// c10d::Reducer measures its first ten steps with events that cannot be captured.
constexpr int kStepsBefore = 12;

// Who records what happens on the host needs it to happen there.
bool is_watched() {
  return instrumentation::recording::enabled() || instrumentation::monitoring::enabled();
}

bool is_alike(const torch::Tensor& a, const torch::Tensor& b) {
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type();
}

std::vector<torch::Tensor> tensors_of(const Batch& batch) {
  auto all = batch.input.tensors();
  all.push_back(batch.target.tensor());
  return all;
}

void refill(const torch::Tensor& from, const torch::Tensor& to) {
  to.copy_(from.is_cpu() ? from.contiguous().pin_memory() : from, /*non_blocking=*/true);
}

}  // namespace

struct StepGraph::State {
  Step step;
  Replayable* optimizer = nullptr;  // null: no graph
  int steps = 0;
  Batch batch;  // what the graph reads
  Loss loss;    // what it writes
  std::optional<at::cuda::CUDAGraph> graph;

  void capture(const Batch& first) {
    batch = first.clone();
    graph.emplace();
    // Other threads (NCCL's watchdog) may go on with calls that a capture forbids this one.
    graph->capture_begin({0, 0}, cudaStreamCaptureModeThreadLocal);
    loss = step(batch);
    graph->capture_end();
  }

  Loss replay(const Batch& next) {
    const auto from = tensors_of(next), to = tensors_of(batch);
    for (size_t i = 0; i < to.size(); ++i) refill(from[i], to[i]);
    graph->replay();
    optimizer->replayed();
    return loss;
  }
};

StepGraph::StepGraph(const Options& options, torch::optim::Optimizer& optimizer, Step step)
    : state_(std::make_unique<State>()) {
  state_->step = std::move(step);
  if (options.fast.has("graph") && !is_watched()) {
    state_->optimizer = dynamic_cast<Replayable*>(&optimizer);
  }
}

void StepGraph::prepare(const Options& options, torch::Device device) {
  if (!options.fast.has("graph") || !device.is_cuda() || is_watched()) return;
  c10::cuda::setCurrentCUDAStream(
      c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device.index()));
}

bool StepGraph::captured() const { return state_->graph.has_value(); }

Loss StepGraph::operator()(const Batch& batch, torch::Device device) {
  State& state = *state_;
  if (!state.optimizer || !device.is_cuda() || state.steps++ < kStepsBefore) {
    return state.step(batch.to(device));
  }
  if (!captured()) {
    // The capture itself runs nothing: the optimizer's host side has counted it, the GPU has not.
    state.capture(batch.to(device));
    state.graph->replay();
    return state.loss;
  }
  // The graph counts the targets of the batch that it was captured with.
  if (batch.target.count() != state.batch.target.count() ||
      !std::ranges::equal(tensors_of(batch), tensors_of(state.batch), is_alike)) {
    return state.step(batch.to(device));
  }
  return state.replay(batch);
}
#else
struct StepGraph::State {
  Step step;
};

StepGraph::StepGraph(const Options& /*options*/, torch::optim::Optimizer& /*optimizer*/, Step step)
    : state_(std::make_unique<State>()) {
  state_->step = std::move(step);
}

void StepGraph::prepare(const Options& /*options*/, torch::Device /*device*/) {}

bool StepGraph::captured() const { return false; }

Loss StepGraph::operator()(const Batch& batch, torch::Device device) {
  return state_->step(batch.to(device));
}
#endif

StepGraph::~StepGraph() = default;

}  // namespace tasks
