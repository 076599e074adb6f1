#pragma once
/// A small model and its input, the same wherever they are made.
#include <torch/torch.h>

/// Of four parameters.
inline torch::nn::Sequential seeded_net() {
  torch::manual_seed(3);
  return torch::nn::Sequential(torch::nn::Linear(5, 33), torch::nn::Tanh(),
                               torch::nn::Linear(33, 7));
}

/// A rank's batch at one step.
inline torch::Tensor rows_of(int rank, int step) {
  auto generator = at::detail::createCPUGenerator(100 * step + rank);
  return torch::randn({6, 5}, generator);
}
