// Uses the hooks that LibTorch's tensors have themselves (Tensor::register_hook). These see a gradient
// just before it is stored. zero_grad() drops gradients, so what comes is all of it.
#pragma once
#include <torch/torch.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

// Parameters whose gradients travel together.
struct Bucket {
  std::vector<torch::Tensor> parameters;
  std::vector<torch::Tensor> pieces;  // flat copies of the gradients as they come
  size_t ready = 0;                   // how many of their gradients this backward() has computed
  torch::Tensor gradients;            // all of them in a row, while they travel
  std::optional<Work> work;
};

inline int64_t bucket_bytes(const torch::nn::Module& module) {
  int64_t all = 0;
  for (const auto& parameter : module.parameters()) all += static_cast<int64_t>(parameter.nbytes());
  return std::min<int64_t>(25 << 20, all / 4);
}

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    copy_from_first(module.buffers());
    copy_from_first(module.parameters());
    fill(module.parameters(), bucket_bytes(module));
    for (size_t b = 0; b < buckets_.size(); ++b) {
      for (size_t i = 0; i < buckets_[b].parameters.size(); ++i) {
        buckets_[b].parameters[i].register_hook([this, b, i](torch::Tensor gradient) {
          auto& bucket = buckets_[b];
          bucket.pieces[i] = gradient.detach().flatten().clone();
          if (++bucket.ready == bucket.parameters.size()) average(bucket);
        });
      }
    }
  }
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  void finish() {
    std::for_each(buckets_.begin(), buckets_.end(), [](Bucket& bucket) {
      bucket.work->wait();
      bucket.work = std::nullopt;
      bucket.ready = 0;
      int64_t start = 0;
      for (auto& parameter : bucket.parameters) {
        const auto end = start + parameter.numel();
        parameter.grad().copy_(bucket.gradients.slice(0, start, end).reshape_as(parameter));
        start = end;
      }
    });
  }

 private:
  static void copy_from_first(const std::vector<torch::Tensor>& tensors) {
    for (const auto& t : tensors) broadcast(t, /*source=*/0);
  }

  void fill(std::vector<torch::Tensor> parameters, int64_t limit) {
    int64_t full = limit + 1;
    for (; !parameters.empty(); parameters.pop_back()) {
      const auto& last = parameters.back();
      full += static_cast<int64_t>(last.nbytes());
      if (full > limit) {
        buckets_.emplace_back();
        full = static_cast<int64_t>(last.nbytes());
      }
      buckets_.back().parameters.push_back(last);
      buckets_.back().pieces.emplace_back();
    }
  }

  void average(Bucket& bucket) {
    bucket.gradients = torch::cat(bucket.pieces);
    bucket.work = all_reduce_async(bucket.gradients, ReduceOp::AVG);
  }

  std::vector<Bucket> buckets_;
};
