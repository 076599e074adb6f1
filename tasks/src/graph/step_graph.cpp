#include "tasks/step_graph.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/process_group.hpp"
#include "graph/captured_step.hpp"
#include "graph/replays.hpp"
#include "graph/watched_step.hpp"
#include "instrumentation/recording.hpp"
#include "phases.hpp"

namespace tasks {

using graph::CapturedStep;
using graph::Obstacle;
using graph::Replays;
using graph::Shape;
using graph::WatchedStep;

namespace {

// c10d::Reducer measures its first ten steps with events that cannot be captured.
constexpr int64_t kStepsBefore = 12;
constexpr int64_t kWatched = 2;  // the last of these
// Libraries choose their kernels and take their memory when they first see a shape.
constexpr int64_t kSeenBefore = 3;
constexpr size_t kMostShapes = 1000, kMostGraphs = 16;

constexpr const char* kWithoutGraph =
    "run with --fast=<parts> without graph; --help names the parts.";

struct OfShape {
  int64_t seen = 0;
  std::unique_ptr<CapturedStep> captured;
};

}  // namespace

struct StepGraph::State : std::enable_shared_from_this<StepGraph::State> {
  bool wanted = false;
  bool asked_by_name = false;
  int64_t steps = 0, replays = 0;
  Obstacle obstacle = Obstacle::none;
  Replayable* optimizer = nullptr;
  std::optional<torch::Device> device;
  std::map<Shape, OfShape> shapes;
  std::map<Shape, int64_t> counts;  // of targets that were seen first
  bool counted = true;              // batches of one shape have the same number of targets
  size_t graphs = 0;
  const CapturedStep* first = nullptr;

  Loss take(const Batch& batch, const Step& step);
  Loss warm_up(const Batch& batch, const Step& step);
  void agree();
  void release_before_destroy();
  void check_gradients() const;
  CapturedStep* captured_for(const Batch& batch, const Step& step);
  Loss replay(CapturedStep& captured, const Batch& batch, const Step& step);
};

Loss StepGraph::State::warm_up(const Batch& batch, const Step& step) {
  const auto [seen, fresh] = counts.emplace(Shape(batch, false), batch.target.count());
  if (seen->second != batch.target.count()) counted = false;
  if (steps <= kStepsBefore - kWatched) return step(batch);
  const WatchedStep watched;
  auto loss = step(batch);
  device = loss.sum.device();
  optimizer = watched.optimizer();
  obstacle = std::max(obstacle, watched.obstacle());
  if (!graph::can_capture(*device)) obstacle = Obstacle::no_device;
  return loss;
}

// Where one rank cannot, none does: collectives in a graph and outside of one meet each other
// anyhow, but a rank that takes its steps one by one makes the others wait.
void StepGraph::State::agree() {
  auto worst = torch::full({}, static_cast<int64_t>(obstacle), torch::dtype(torch::kLong));
  if (distributed_utils::get_world_size() > 1) {
    worst = worst.to(*device);
    distributed_utils::all_reduce(worst, distributed_utils::ReduceOp::MAX);
  }
  obstacle = static_cast<Obstacle>(worst.item<int64_t>());
  const bool told =
      obstacle != Obstacle::none && (obstacle != Obstacle::no_device || asked_by_name);
  if (told && distributed_utils::get_rank() == 0) {
    fmt::println(stderr, "--fast: no CUDA graph, because {}", in_words(obstacle));
  }
}

// Null: the batch's shape is new, or there are too many.
CapturedStep* StepGraph::State::captured_for(const Batch& batch, const Step& step) {
  const Shape shape(batch, counted);
  if (shapes.size() >= kMostShapes && !shapes.contains(shape)) return nullptr;
  auto& own = shapes[shape];
  if (own.captured) return own.captured.get();
  if (++own.seen <= kSeenBefore || graphs == kMostGraphs) return nullptr;
  auto captured = std::make_unique<CapturedStep>(batch, *device, counted, first);
  try {
    captured->capture(step, *optimizer);
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw Error(
        fmt::format("--fast: the training step cannot be captured as a CUDA graph: {}. Fix: {}",
                    text.substr(0, text.find('\n')), kWithoutGraph));
  }
  if (++graphs == 1 && distributed_utils::is_initialized()) release_before_destroy();
  if (first == nullptr) first = captured.get();
  own.captured = std::move(captured);
  return own.captured.get();
}

// The end of a group waits for graphs that hold its collectives.
void StepGraph::State::release_before_destroy() {
  distributed_utils::before_destroy([weak = weak_from_this()] {
    const auto state = weak.lock();
    if (!state) return;
    state->wanted = false;
    state->shapes.clear();
  });
}

// A step that took the number of targets from the host has divided by 0, or multiplied with it.
void StepGraph::State::check_gradients() const {
  const torch::NoGradGuard no_grad;
  auto sum = torch::zeros({}, torch::dtype(torch::kDouble).device(*device));
  for (const auto& group : dynamic_cast<torch::optim::Optimizer&>(*optimizer).param_groups()) {
    for (const auto& parameter : group.params()) {
      if (parameter.grad().defined()) sum += parameter.grad().abs().sum();
    }
  }
  const double size = sum.item<double>();
  if (std::isfinite(size) && size > 0) return;
  throw Error(
      fmt::format("--fast: the training step reads the number of targets on the host, and a CUDA "
                  "graph would repeat the first one. Fix: use loss.mean() or loss.targets(), or {}",
                  kWithoutGraph));
}

Loss StepGraph::State::replay(CapturedStep& captured, const Batch& batch, const Step& step) {
  ++replays;
  const bool is_new = captured.is_new();
  if (!device->is_cuda()) {
    auto loss = captured.replay(batch, step, *optimizer);
    if (is_new && !counted) check_gradients();
    return loss;
  }
  auto& under_way = Replays::of_process();
  phases::replay_begins(*dynamic_cast<torch::optim::Optimizer*>(optimizer));
  under_way.begins(*device);
  auto loss = captured.replay(batch, step, *optimizer);
  under_way.ends();
  if (is_new && !counted) check_gradients();
  return loss;
}

Loss StepGraph::State::take(const Batch& batch, const Step& step) {
  ++steps;
  if (steps == kStepsBefore + 1) agree();
  if (steps <= kStepsBefore) {
    return warm_up(batch, step);
  }
  if (obstacle != Obstacle::none) return step(batch);
  CapturedStep* captured = captured_for(batch, step);
  return captured != nullptr ? replay(*captured, batch, step) : step(batch);
}

StepGraph::StepGraph(const Options& options) : state_(std::make_shared<State>()) {
  state_->wanted = options.fast.has("graph") && !instrumentation::recording::enabled();
  state_->asked_by_name = !options.fast.all;
}

StepGraph::~StepGraph() = default;

int64_t StepGraph::replays() const { return state_->replays; }

Loss StepGraph::take(const Batch& batch, const Step& step) {
  return state_->wanted ? state_->take(batch, step) : step(batch);
}

}  // namespace tasks
