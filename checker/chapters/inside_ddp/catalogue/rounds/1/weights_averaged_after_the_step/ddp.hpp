// Step 08: the average of all ranks' models after each step
#pragma once
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;


// Keeps the models of all ranks alike. finish() comes after the optimizer's step.
class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) : weights_(module.parameters()) {
    for (const auto& w : weights_) broadcast(w, 0);
    for (const auto& b : module.buffers()) broadcast(b, 0);
  }

  void finish() {
    const torch::NoGradGuard no_grad;
    std::vector<Work> works;
    for (const auto& w : weights_) works.push_back(all_reduce_async(w, ReduceOp::AVG));
    for (auto& work : works) work.wait();
  }

 private:
  std::vector<torch::Tensor> weights_;
};
