// Step 08: a full bucket goes into the list
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

struct Bucket {
  std::vector<torch::Tensor> parameters;
  size_t ready = 0;
  torch::Tensor gradients;
  std::optional<Work> work;
};

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    for (const auto& p : module.parameters()) broadcast(p, 0);
    for (const auto& b : module.buffers()) broadcast(b, 0);

    const auto capacity = bucket_bytes(module);
    const auto parameters = module.parameters();
    Bucket filling;
    int64_t size = 0;
    for (size_t i = parameters.size(); i > 0; --i) {
      const auto& p = parameters[i - 1];
      if (!filling.parameters.empty() && size + static_cast<int64_t>(p.nbytes()) > capacity) {
        buckets_.push_back(std::move(filling));
        filling = {};
        size = 0;
      }
      filling.parameters.push_back(p);
      size += static_cast<int64_t>(p.nbytes());
    }

    for (size_t i = 0; i < buckets_.size(); ++i) {
      for (const auto& p : buckets_[i].parameters) {
        register_post_accumulate_grad_hook(p, [this, i](const torch::Tensor&) { count(buckets_[i]); });
      }
    }
  }

  void finish() {
    for (auto& bucket : buckets_) {
      bucket.work->wait();
      bucket.ready = 0;
      int64_t offset = 0;
      for (const auto& p : bucket.parameters) {
        p.grad().copy_(bucket.gradients.slice(0, offset, offset + p.numel()).view(p.sizes()));
        offset += p.numel();
      }
    }
  }

 private:
  void count(Bucket& bucket) {
    if (++bucket.ready < bucket.parameters.size()) return;
    std::vector<torch::Tensor> row;
    for (const auto& p : bucket.parameters) row.push_back(p.grad().flatten());
    bucket.gradients = torch::cat(row);
    bucket.work = all_reduce_async(bucket.gradients, ReduceOp::AVG);
  }
  std::vector<Bucket> buckets_;
};
