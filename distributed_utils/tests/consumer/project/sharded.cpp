// Trains with FullyShardedDataParallel and goes on from a checkpoint, at whatever number of ranks,
// with the installed library only: sharded <directory of checkpoints> <cpu or cuda> <steps>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>

#include <cstdlib>
#include <string>

#include "distributed_utils/distributed_utils.hpp"

namespace du = distributed_utils;

struct Layer : du::Block {
  Layer(int64_t from, int64_t to)
      : linear(register_module("linear", torch::nn::Linear(from, to))) {}
  torch::Tensor forward(const torch::Tensor& x) override { return torch::tanh(linear(x)); }
  torch::nn::Linear linear;
};

struct Net : torch::nn::Module {
  Net() {
    for (int i = 0; i < 3; ++i) {
      layers.push_back(register_module(std::to_string(i), std::make_shared<Layer>(5, 5)));
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (const auto& layer : layers) x = (*layer)(x);
    return x;
  }
  std::vector<std::shared_ptr<du::Block>> layers;
};

int main(int argc, char** argv) {
  if (argc != 4) {
    du::print0("usage: sharded <directory of checkpoints> <cpu or cuda> <steps>");
    return 2;
  }
  const auto [rank, local_rank, world_size, device] = du::setup({.device = c10::Device(argv[2])});
  torch::manual_seed(0);
  const auto net = std::make_shared<Net>();
  net->to(device, torch::kFloat64);
  const auto model = du::FullyShardedDataParallel(net, {.units = net->layers});
  torch::optim::AdamW optimizer(model->parameters(), torch::optim::AdamWOptions(0.01));

  // Six samples, the same in every step; rank r of w has r, r + w, r + 2w, and so on.
  const auto samples = torch::randn({6, 5}, torch::kFloat64).to(device);
  const auto input = samples.slice(0, rank, 6, world_size);
  du::Checkpoints checkpoints(argv[1]);
  auto start = checkpoints.load_latest();
  start.restore(*model, optimizer);
  for (int64_t step = start.step() + 1; step <= std::atoi(argv[3]); ++step) {
    model->zero_grad();
    auto loss = torch::mse_loss(model->forward(input), input.flip({1}));
    loss.backward();
    optimizer.step();
    du::all_reduce(loss.detach(), du::ReduceOp::AVG);
    checkpoints.save(step, *model, optimizer);
    du::print0("step {}: loss {:.12f}", step, loss.item<double>());
  }
  du::destroy_process_group();
}
