// One training step on every rank, with the installed library only. Exits with 1 where a result is
// not what it must be.
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "distributed_utils/distributed_utils.hpp"

namespace du = distributed_utils;

static void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "consumer: %s\n", what);
  std::exit(1);
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: consumer <file to save to> <cpu or cuda>\n");
    return 2;
  }
  const auto world = du::setup({.device = c10::Device(argv[2])});

  // Rank r's input is r + 1, so the gradient of the weights is the mean of 1 .. world_size.
  torch::nn::Linear linear(torch::nn::LinearOptions(3, 1).bias(false));
  linear->to(world.device);
  const double mean = (world.world_size + 1) / 2.0;
  auto model = du::DistributedDataParallel(linear);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1));
  const auto input = torch::full({1, 3}, world.rank + 1.0, world.device);
  model->forward(input).sum().backward();
  expect((linear->weight.grad() - mean).abs().max().item<double>() < 1e-6,
         "the gradient is not the mean over ranks");
  optimizer.step();

  auto sum = torch::ones({2}, world.device);
  du::all_reduce(sum);
  expect(sum[1].item<double>() == world.world_size, "all_reduce did not add up the ranks");

  du::save0(*model, argv[1]);
  du::barrier();
  torch::nn::Linear loaded(torch::nn::LinearOptions(3, 1).bias(false));
  du::load(*loaded, argv[1]);
  expect(loaded->weight.equal(linear->weight.cpu()), "what was loaded is not what was saved");

  du::print0("consumer: {} ranks, gradient {}", world.world_size, mean);
  du::destroy_process_group();
}
