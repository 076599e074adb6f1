// Step 08: the message under way is in pending_
#pragma once
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;


// One message for each gradient, no buckets yet.
class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) : parameters_(module.parameters()) {
    for (const auto& p : parameters_) broadcast(p, 0);
    for (const auto& b : module.buffers()) broadcast(b, 0);
    for (const auto& p : parameters_) {
      register_post_accumulate_grad_hook(p, [this](const torch::Tensor& parameter) {
        pending_ = std::make_shared<Work>(all_reduce_async(parameter.grad(), ReduceOp::AVG));
      });
    }
  }

  void finish() {
    pending_->wait();
    pending_.reset();
  }

 private:
  std::vector<torch::Tensor> parameters_;
  std::shared_ptr<Work> pending_;
};
