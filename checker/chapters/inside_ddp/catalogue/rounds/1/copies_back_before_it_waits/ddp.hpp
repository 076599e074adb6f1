// Step 08: unpacked before it has come
#pragma once
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

inline int64_t bucket_bytes(const torch::nn::Module& module) {
  int64_t all = 0;
  for (const auto& parameter : module.parameters()) all += static_cast<int64_t>(parameter.nbytes());
  return std::min<int64_t>(25 << 20, all / 4);
}

struct Load {
  std::vector<torch::Tensor> parameters;
  std::vector<int64_t> offsets;
  int64_t numel = 0;
  size_t ready = 0;
  torch::Tensor gradients;
};

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    for (const auto& p : module.parameters()) broadcast(p, 0);
    for (const auto& b : module.buffers()) broadcast(b, 0);
    const auto limit = bucket_bytes(module);
    auto ps = module.parameters();
    for (auto it = ps.rbegin(); it != ps.rend(); ++it) {
      const auto width = static_cast<int64_t>(it->element_size());
      if (loads_.empty() || (loads_.back()->numel + it->numel()) * width > limit) {
        loads_.push_back(std::make_shared<Load>());
      }
      auto load = loads_.back();
      load->parameters.push_back(*it);
      load->offsets.push_back(load->numel);
      load->numel += it->numel();
      register_post_accumulate_grad_hook(*it, [this, load](const torch::Tensor&) {
        if (++load->ready == load->parameters.size()) leave(*load);
      });
    }
  }

  void finish() {
    for (auto& load : loads_) unpack(*load);
    for (auto& work : works_) work.wait();
    works_.clear();
  }

 private:
  void leave(Load& load) {
    std::vector<torch::Tensor> flat;
    for (const auto& p : load.parameters) flat.push_back(p.grad().flatten());
    load.gradients = torch::cat(flat);
    works_.push_back(all_reduce_async(load.gradients, ReduceOp::AVG));
  }
  static void unpack(Load& load) {
    for (size_t i = 0; i < load.parameters.size(); ++i) {
      auto& p = load.parameters[i];
      p.grad().copy_(load.gradients.narrow(0, load.offsets[i], p.numel()).view_as(p));
    }
    load.ready = 0;
  }

  std::vector<std::shared_ptr<Load>> loads_;
  std::vector<Work> works_;
};
