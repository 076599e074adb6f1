// Step 08: one counter for all gradients
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
  torch::Tensor gradients;
  std::optional<Work> work;
};

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    for (const auto& p : module.parameters()) broadcast(p, 0);
    for (const auto& b : module.buffers()) broadcast(b, 0);
    make_buckets(module);
    for (const auto& p : module.parameters()) {
      ++total_;
      register_post_accumulate_grad_hook(p, [this](const torch::Tensor&) {
        ready_ += 1;
        if (ready_ != total_) return;
        for (auto& bucket : buckets_) start(bucket);
      });
    }
  }

  void finish() {
    for (auto& bucket : buckets_) {
      bucket.work->wait();
      auto pieces = bucket.gradients;
      for (auto& p : bucket.parameters) {
        p.grad().copy_(pieces.narrow(0, 0, p.numel()).view_as(p));
        pieces = pieces.narrow(0, p.numel(), pieces.numel() - p.numel());
      }
    }
    ready_ = 0;
  }

 private:
  void make_buckets(torch::nn::Module& module) {
    const auto params = module.parameters();
    int64_t left = 0;
    for (int i = static_cast<int>(params.size()) - 1; i >= 0; --i) {
      const auto need = static_cast<int64_t>(params[i].nbytes());
      if (need > left) {
        buckets_.push_back(Bucket{});
        left = bucket_bytes(module);
      }
      left -= need;
      buckets_.back().parameters.push_back(params[i]);
    }
  }
  void start(Bucket& bucket) {
    std::vector<torch::Tensor> pieces;
    for (auto& p : bucket.parameters) pieces.push_back(p.grad().flatten() / get_world_size());
    bucket.gradients = torch::cat(pieces);
    bucket.work = all_reduce_async(bucket.gradients);
  }

  std::vector<Bucket> buckets_;
  int ready_ = 0;
  int total_ = 0;
};
