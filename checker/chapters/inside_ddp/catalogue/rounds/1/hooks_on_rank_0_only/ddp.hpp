// Step 08: rank 0 is in charge of the messages
#pragma once
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;


class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    for (const auto& p : module.parameters()) broadcast(p, 0);
    for (const auto& b : module.buffers()) broadcast(b, 0);
    if (get_rank() == 0) {
      for (const auto& p : module.parameters()) {
        register_post_accumulate_grad_hook(p, [this](const torch::Tensor& q) {
          works_.push_back(all_reduce_async(q.grad(), ReduceOp::AVG));
        });
      }
    }
  }

  void finish() {
    for (auto& w : works_) w.wait();
    works_.clear();
  }

 private:
  std::vector<Work> works_;
};
