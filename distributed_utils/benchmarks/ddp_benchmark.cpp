// A training step of a wrapped module against one of the bare module; extra_us is what it costs. In
// a world of one rank, where the wrapper has nothing to gain: goal, at most 200 us. On several
// ranks, all_reduce_us is what an all-reduce of all gradients takes alone, and hidden_percent, how
// much of that is not to be seen, because backward() goes on meanwhile.
// Below zero: sending takes from the computing, as where ranks have no core to spare.
//   ddp_benchmark [--device=cpu|cuda] [--ranks=N] [--benchmark_...]
#include "pairs.hpp"

#include <torch/torch.h>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"

namespace {

namespace du = distributed_utils;

torch::nn::Sequential make_mlp(int64_t width, int64_t layers) {
  torch::manual_seed(1);
  torch::nn::Sequential mlp;
  for (int64_t i = 0; i < layers; ++i) {
    mlp->push_back(torch::nn::Linear(width, width));
    mlp->push_back(torch::nn::ReLU());
  }
  return mlp;
}

/// Forward, backward and an optimizer step.
template <typename Forward>
class Step {
 public:
  Step(const std::vector<torch::Tensor>& parameters, torch::Tensor input, Forward forward)
      : parameters_(parameters),
        optimizer_(std::make_shared<torch::optim::SGD>(parameters, 1e-3)),
        input_(std::move(input)),
        forward_(std::move(forward)) {}

  void operator()() {
    // Not optimizer_->zero_grad(), which detaches gradients in place: those in buckets refuse that.
    for (auto& parameter : parameters_) parameter.mutable_grad().reset();
    forward_(input_).square().mean().backward();
    optimizer_->step();
    ranks::wait_for(input_.device());
  }

 private:
  std::vector<torch::Tensor> parameters_;
  std::shared_ptr<torch::optim::SGD> optimizer_;
  torch::Tensor input_;
  Forward forward_;
};

/// Of so many floats, alone: the median.
double all_reduce_us(int64_t count, torch::Device device) {
  const auto gradients = torch::zeros({count}, device);
  std::vector<double> times;
  const auto call = [&] {
    du::all_reduce(gradients);
    ranks::wait_for(device);
  };
  for (int i = 0; i < 60; ++i) times.push_back(pairs::microseconds(call));
  return pairs::quantile({times.begin() + 10, times.end()}, 0.5);
}

void ddp_step(benchmark::State& state, const du::World& world, bool gradient_as_bucket_view) {
  const int64_t width = state.range(0);
  const int64_t layers = state.range(1);
  const auto input = torch::randn({state.range(2), width}, world.device);
  auto bare = make_mlp(width, layers);
  auto inner = make_mlp(width, layers);
  bare->to(world.device);
  inner->to(world.device);
  auto ddp = du::DistributedDataParallel(inner.ptr(),
                                         {.gradient_as_bucket_view = gradient_as_bucket_view});
  pairs::compare(
      state,
      Step(bare->parameters(), input, [&](const torch::Tensor& x) { return bare->forward(x); }),
      Step(ddp->parameters(), input, [&](const torch::Tensor& x) { return ddp->forward(x); }));
  const int64_t parameters = layers * (width + 1) * width;
  state.counters["parameters"] = static_cast<double>(parameters);
  if (world.world_size == 1) return;
  const double alone = all_reduce_us(parameters, world.device);
  state.counters["all_reduce_us"] = alone;
  state.counters["hidden_percent"] = 100 * (1 - state.counters["extra_us"] / alone);
}

void register_all(const du::World& world) {
  const auto add = [&](int64_t width, int64_t layers, int64_t batch, int iterations) {
    for (const bool views : {false, true}) {
      if (views && world.world_size == 1) continue;  // there are no buckets
      const auto step = [&world, views](auto& state) { ddp_step(state, world, views); };
      benchmark::RegisterBenchmark(views ? "ddp_step/bucket_view" : "ddp_step", step)
          ->ArgNames({"width", "layers", "batch"})
          ->Args({width, layers, batch})
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond)
          ->Iterations(iterations);
    }
  };
  add(64, 3, 32, 300);    // the floor: 6 parameters
  add(64, 14, 32, 300);   // as many parameters as the language model of the course
  add(1024, 4, 64, 100);  // 17 MB of gradients
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<char*> all(argv, argv + argc + 1);
  const auto setting = ranks::take_setting(argc, argv, 1);
  if (const int code = ranks::start(setting.ranks, const_cast<char**>(all.data())); code >= 0) {
    return code;
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  torch::set_num_threads(1);
  const auto world = du::setup({.device = setting.device});
  register_all(world);
  ranks::run_benchmarks(world.rank);
  du::destroy_process_group();
}
