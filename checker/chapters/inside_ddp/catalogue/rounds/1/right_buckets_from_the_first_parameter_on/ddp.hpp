// Step 08: buckets in the order of the parameters
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

class DataParallel {
  struct Box {
    std::vector<torch::Tensor> params;
    size_t waiting_for = 0;
    torch::Tensor content;
  };

 public:
  explicit DataParallel(torch::nn::Module& module) {
    for (const auto& p : module.parameters()) broadcast(p, 0);
    for (const auto& b : module.buffers()) broadcast(b, 0);
    int64_t bytes = 0;
    for (const auto& p : module.parameters()) {
      const auto b = static_cast<int64_t>(p.nbytes());
      if (boxes_.empty() || bytes + b > bucket_bytes(module)) {
        boxes_.emplace_back();
        bytes = 0;
      }
      boxes_.back().params.push_back(p);
      boxes_.back().waiting_for++;
      bytes += b;
    }
    for (size_t i = 0; i < boxes_.size(); i++) {
      for (const auto& p : boxes_[i].params) {
        register_post_accumulate_grad_hook(p, [this, i](const torch::Tensor&) {
          if (--boxes_[i].waiting_for == 0) ship(i);
        });
      }
    }
  }

  void finish() {
    for (auto& [i, work] : works_) {
      work.wait();
      auto& box = boxes_[i];
      int64_t from = 0;
      for (auto& p : box.params) {
        p.grad().copy_(box.content.slice(0, from, from + p.numel()).view_as(p));
        from += p.numel();
      }
      box.waiting_for = box.params.size();
    }
    works_.clear();
  }

 private:
  void ship(size_t i) {
    std::vector<torch::Tensor> flat;
    for (auto& p : boxes_[i].params) flat.push_back(p.grad().flatten());
    boxes_[i].content = torch::cat(flat);
    works_.emplace(i, all_reduce_async(boxes_[i].content, ReduceOp::AVG));
  }
  std::vector<Box> boxes_;
  std::map<size_t, Work> works_;
};
