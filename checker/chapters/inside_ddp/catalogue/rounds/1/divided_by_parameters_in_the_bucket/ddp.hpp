// Step 08: all of it
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
  size_t here = 0;
  torch::Tensor gradients;
  std::optional<Work> work;
};

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    auto synchronize = [](const auto& tensors) {
      for (const auto& tensor : tensors) broadcast(tensor, 0);
    };
    synchronize(module.parameters());
    synchronize(module.buffers());

    const auto capacity = static_cast<size_t>(bucket_bytes(module));
    auto parameters = module.parameters();
    std::reverse(parameters.begin(), parameters.end());
    auto fits = [&](const Bucket& bucket, const torch::Tensor& p) {
      size_t sum = p.nbytes();
      for (const auto& q : bucket.parameters) sum += q.nbytes();
      return sum <= capacity;
    };
    buckets_.reserve(parameters.size());  // so that no bucket moves
    for (const auto& p : parameters) {
      if (buckets_.empty() || !fits(buckets_.back(), p)) buckets_.emplace_back();
      Bucket& bucket = buckets_.back();
      bucket.parameters.push_back(p);
      register_post_accumulate_grad_hook(p, [&bucket](const torch::Tensor&) {
        if (++bucket.here == bucket.parameters.size()) average(bucket);
      });
    }
  }
  DataParallel(const DataParallel&) = delete;

  void finish() {
    for (auto& bucket : buckets_) {
      bucket.work.value().wait();
      int64_t offset = 0;
      for (const auto& p : bucket.parameters) {
        p.grad().copy_(bucket.gradients.slice(0, offset, offset + p.numel()).view_as(p));
        offset += p.numel();
      }
      bucket.here = 0;
    }
  }

 private:
  static void average(Bucket& bucket) {
    std::vector<torch::Tensor> flat;
    for (const auto& p : bucket.parameters) flat.push_back(p.grad().flatten());
    bucket.gradients = torch::cat(flat) / static_cast<double>(flat.size());
    bucket.work = all_reduce_async(bucket.gradients, ReduceOp::SUM);
  }
  std::vector<Bucket> buckets_;
};
