// Step 08: rank 0 collects the gradients and takes their mean
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
    auto list = module.parameters();
    auto space = int64_t{0};
    while (!list.empty()) {
      auto p = list.back();
      list.pop_back();
      if (static_cast<int64_t>(p.nbytes()) > space) {
        buckets_.emplace_back(new Bucket);
        space = bucket_bytes(module);
      }
      space -= static_cast<int64_t>(p.nbytes());
      buckets_.back()->parameters.push_back(p);
    }
    for (auto& bucket : buckets_) {
      for (const auto& p : bucket->parameters) {
        register_post_accumulate_grad_hook(p, [b = bucket.get()](const torch::Tensor&) {
          if (++b->ready == b->parameters.size()) send(*b);
        });
      }
    }
  }

  void finish() {
    for (auto& bucket : buckets_) {
      bucket->work->wait();
      bucket->ready = 0;
      bucket->gradients.div_(get_world_size());
      if (get_rank() == 0) unpack(*bucket);
    }
  }

 private:
  static void send(Bucket& b) {
    std::vector<torch::Tensor> parts;
    for (const auto& p : b.parameters) parts.push_back(p.grad().flatten());
    b.gradients = torch::cat(parts);
    b.work = reduce_async(b.gradients, 0, ReduceOp::SUM);
  }
  static void unpack(Bucket& b) {
    int64_t start = 0;
    for (const auto& p : b.parameters) {
      p.grad().copy_(b.gradients.narrow(0, start, p.numel()).view_as(p));
      start += p.numel();
    }
  }
  std::vector<std::unique_ptr<Bucket>> buckets_;
};
