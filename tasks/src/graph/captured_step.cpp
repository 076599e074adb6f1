#include "graph/captured_step.hpp"

#include "instrumentation/pause.hpp"

namespace tasks::graph {
namespace {

std::vector<torch::Tensor> tensors_of(const Batch& batch) {
  auto all = batch.input.tensors();
  all.push_back(batch.target.tensor());
  return all;
}

// Copies of less go to where a graph reads them without a stop in between. Larger ones get there
// on a stream of their own while the GPU computes (see Batch::to), and are moved then.
constexpr size_t kSmall = 1 << 20;

}  // namespace

Shape::Shape(const Batch& batch, bool counted) {
  if (counted) targets = batch.target.count();
  for (const auto& tensor : tensors_of(batch)) {
    sizes.push_back(tensor.sizes().vec());
    types.push_back(tensor.scalar_type());
  }
}

CapturedStep::CapturedStep(const Batch& first, torch::Device device, bool counted,
                           const CapturedStep* older)
    : batch_(first.to(device).clone()),
      graph_(new_graph(device, older ? older->graph_.get() : nullptr)) {
  if (counted) return;
  count_ = torch::full({}, static_cast<double>(first.target.count()),
                       torch::dtype(torch::kDouble).device(device));
  batch_.target = batch_.target.counted_by(count_);
}

void CapturedStep::capture(const StepGraph::Step& step, Replayable& optimizer) {
  optimizer.before_replay();
  const instrumentation::Pause unobserved;
  graph_->capture([&] { loss_ = step(batch_); });
  fresh_ = true;
}

void CapturedStep::refill(const Batch& next) {
  if (count_.defined()) count_.fill_(static_cast<double>(next.target.count()));
  const auto from = tensors_of(next), to = tensors_of(batch_);
  for (size_t i = 0; i < to.size(); ++i) {
    if (to[i].is_cpu() || !from[i].is_cpu()) {
      to[i].copy_(from[i]);
    } else if (from[i].nbytes() < kSmall) {
      to[i].copy_(from[i].contiguous().pin_memory(), /*non_blocking=*/true);
    } else {
      to[i].copy_(Input(from[i]).to(to[i].device())[0], /*non_blocking=*/true);
    }
  }
}

// The loss is a copy: a trainer may keep it, and the next replay writes over this one.
Loss CapturedStep::replay(const Batch& next, const StepGraph::Step& step, Replayable& optimizer) {
  if (!fresh_) {
    optimizer.before_replay();
    refill(next);
  }
  graph_->replay([&] { loss_ = step(batch_); });
  if (!fresh_ && graph_->host_runs_capture()) optimizer.replayed();
  fresh_ = false;
  Loss loss{loss_.sum.detach().clone(), next.target.count()};
  if (loss_.metrics.defined()) loss.metrics = loss_.metrics.clone();
  return loss;
}

}  // namespace tasks::graph
