// A training step of a wrapped module against one of the bare module, in a world of one rank, where
// the wrapper has nothing to gain: extra_us is what it costs. Goal: at most 200 us.
#include "pairs.hpp"

#include <torch/torch.h>

#include "distributed_utils/ddp.hpp"
#include "distributed_utils/setup.hpp"

namespace {

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
  }

 private:
  std::vector<torch::Tensor> parameters_;
  std::shared_ptr<torch::optim::SGD> optimizer_;
  torch::Tensor input_;
  Forward forward_;
};

void ddp_step(benchmark::State& state, bool gradient_as_bucket_view) {
  const int64_t width = state.range(0);
  const int64_t layers = state.range(1);
  const auto input = torch::randn({state.range(2), width});
  auto bare = make_mlp(width, layers);
  auto inner = make_mlp(width, layers);
  auto ddp = distributed_utils::DistributedDataParallel(
      inner.ptr(), {.gradient_as_bucket_view = gradient_as_bucket_view});
  pairs::compare(
      state,
      Step(bare->parameters(), input, [&](const torch::Tensor& x) { return bare->forward(x); }),
      Step(ddp->parameters(), input, [&](const torch::Tensor& x) { return ddp->forward(x); }));
  state.counters["parameters"] = static_cast<double>(layers * (width + 1) * width);
}

void shapes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"width", "layers", "batch"})
      ->Args({64, 3, 32})    // the floor: 6 parameters
      ->Args({64, 14, 32})   // as many parameters as the language model of the course
      ->Args({1024, 4, 64})  // 17 MB of gradients: copying them counts
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(300);
}

BENCHMARK_CAPTURE(ddp_step, copied, false)->Apply(shapes);
BENCHMARK_CAPTURE(ddp_step, bucket_view, true)->Apply(shapes);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  torch::set_num_threads(1);
  distributed_utils::setup({.device = torch::Device(torch::kCPU)});
  benchmark::RunSpecifiedBenchmarks();
  distributed_utils::destroy_process_group();
}
