// Step 08: buckets
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
  std::vector<torch::Tensor> tensors;
  size_t arrived = 0;
  torch::Tensor joined;
  std::optional<Work> work;
};

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    for (const auto& p : module.parameters()) broadcast(p, 0);
    for (const auto& b : module.buffers()) broadcast(b, 0);
    auto stack = module.parameters();
    const auto limit = static_cast<size_t>(bucket_bytes(module));
    while (!stack.empty()) {
      auto bucket = std::make_unique<Bucket>();
      size_t sum = 0;
      while (!stack.empty() && (sum == 0 || sum + stack.back().nbytes() <= limit)) {
        sum += stack.back().nbytes();
        // in front, so that a bucket is in the order of the model again
        bucket->tensors.insert(bucket->tensors.begin(), stack.back());
        stack.pop_back();
      }
      for (const auto& p : bucket->tensors) {
        register_post_accumulate_grad_hook(p, [b = bucket.get()](const torch::Tensor&) {
          if (++b->arrived == b->tensors.size()) join_and_send(*b);
        });
      }
      buckets_.push_back(std::move(bucket));
    }
  }

  void finish() {
    for (auto& b : buckets_) {
      b->work->wait();
      b->arrived = 0;
      int64_t at = 0;
      // backward() came to the last one first
      for (auto p = b->tensors.rbegin(); p != b->tensors.rend(); ++p) {
        p->grad().copy_(b->joined.narrow(0, at, p->numel()).view_as(*p));
        at += p->numel();
      }
    }
  }

 private:
  static void join_and_send(Bucket& b) {
    std::vector<torch::Tensor> all;
    for (const auto& p : b.tensors) all.push_back(p.grad().flatten());
    b.joined = torch::cat(all);
    b.work = all_reduce_async(b.joined, ReduceOp::AVG);
  }
  std::vector<std::unique_ptr<Bucket>> buckets_;
};
