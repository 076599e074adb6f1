// Step 08. Parameters find their bucket through a map; buckets leave strictly in order of their number.
#pragma once
#include <torch/torch.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

// Parameters whose gradients travel together.
struct Bucket {
  std::vector<torch::Tensor> parameters;
  size_t ready = 0;
  torch::Tensor gradients;
  std::optional<Work> work;
};

// How much a bucket should hold: 25 MiB, as in PyTorch, or a quarter of a model that is small.
inline int64_t bucket_bytes(const torch::nn::Module& module) {
  int64_t all = 0;
  for (const auto& parameter : module.parameters()) all += static_cast<int64_t>(parameter.nbytes());
  return std::min<int64_t>(25 << 20, all / 4);
}

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) : world_(get_world_size()) {
    // TODO 18: flat copy of everything of rank 0, then cut it up again
    sync(module.parameters());
    sync(module.buffers());

    // TODO 21
    auto params = module.parameters();
    std::reverse(params.begin(), params.end());
    const auto cap = bucket_bytes(module);
    int64_t used = 0;
    for (const auto& p : params) {
      const auto b = static_cast<int64_t>(p.nbytes());
      if (buckets_.empty() || used + b > cap) {
        buckets_.emplace_back();
        used = 0;
      }
      buckets_.back().parameters.push_back(p);
      home_[p.unsafeGetTensorImpl()] = buckets_.size() - 1;
      used += b;
    }
    // TODO 20
    for (const auto& p : params) {
      register_post_accumulate_grad_hook(p, [this](const torch::Tensor& q) { on_gradient(q); });
    }
  }
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  void finish() {
    for (auto& bucket : buckets_) {
      bucket.work->wait();
      bucket.work.reset();
      std::vector<int64_t> sizes;
      for (const auto& p : bucket.parameters) sizes.push_back(p.numel());
      const auto pieces = bucket.gradients.split_with_sizes(sizes);
      for (size_t i = 0; i < pieces.size(); ++i) {
        const auto& p = bucket.parameters[i];
        p.grad().copy_(pieces[i].view(p.sizes()));
      }
      bucket.ready = 0;
    }
    next_ = 0;
  }

 private:
  static void sync(const std::vector<torch::Tensor>& tensors) {
    const torch::NoGradGuard guard;
    for (const auto& t : tensors) {
      auto copy = t.detach().clone();
      broadcast(copy, 0);
      if (get_rank() != 0) t.detach().copy_(copy);
    }
  }

  void on_gradient(const torch::Tensor& p) {
    auto& bucket = buckets_[home_.at(p.unsafeGetTensorImpl())];
    ++bucket.ready;
    while (next_ < buckets_.size() && buckets_[next_].ready == buckets_[next_].parameters.size()) {
      average(buckets_[next_++]);
    }
  }

  void average(Bucket& bucket) {
    std::vector<torch::Tensor> flat;
    for (const auto& p : bucket.parameters) flat.push_back(p.grad().reshape(-1) / world_);
    bucket.gradients = torch::cat(flat);
    bucket.work.emplace(all_reduce_async(bucket.gradients));
  }

  int world_;
  size_t next_ = 0;
  std::map<const c10::TensorImpl*, size_t> home_;
  std::deque<Bucket> buckets_;
};
