// Step 08: buckets; all messages under way together
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
 public:
  explicit DataParallel(torch::nn::Module& module) {
    for (const auto& p : module.parameters()) broadcast(p, 0);
    for (const auto& b : module.buffers()) broadcast(b, 0);
    const auto limit = bucket_bytes(module);
    const auto parameters = module.parameters();
    std::vector<torch::Tensor> bucket;
    int64_t bytes = 0;
    for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
      const auto more = static_cast<int64_t>(p->nbytes());
      if (bytes + more > limit && !bucket.empty()) {
        buckets_.push_back(bucket);
        bucket.clear();
        bytes = 0;
      }
      bucket.push_back(*p);
      bytes += more;
    }
    if (!bucket.empty()) buckets_.push_back(bucket);
  }

  void finish() {
    std::vector<torch::Tensor> rows;
    std::vector<Work> works;
    // Start them all, so that they travel at the same time ...
    for (const auto& bucket : buckets_) {
      std::vector<torch::Tensor> gradients;
      for (const auto& p : bucket) gradients.push_back(p.grad().flatten());
      rows.push_back(torch::cat(gradients));
      works.push_back(all_reduce_async(rows.back(), ReduceOp::AVG));
    }
    // ... and collect them.
    for (size_t i = 0; i < buckets_.size(); ++i) {
      works[i].wait();
      int64_t at = 0;
      for (const auto& p : buckets_[i]) {
        p.grad().copy_(rows[i].slice(0, at, at + p.numel()).view_as(p));
        at += p.numel();
      }
    }
  }

 private:
  std::vector<std::vector<torch::Tensor>> buckets_;
};
