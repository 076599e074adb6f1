// Solution of step 08: DistributedDataParallel from the inside.
//
// The finished trainer again, but you write its DistributedDataParallel yourself: DataParallel in
// ddp.hpp. Begin with a correct and slow version. At the end gradients travel in buckets while
// backward() still computes.
//
// Run it: ./workbook run 08 --world 2 --solution
// Made by ./workbook render from checker/chapters/inside_ddp/ddp.hpp.

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
  size_t ready = 0;         // how many of their gradients this backward() has computed
  torch::Tensor gradients;  // all of them in a row, while they travel
  std::optional<Work> work;
};

// How much a bucket should hold: 25 MiB, as in PyTorch, or a quarter of a model that is small.
inline int64_t bucket_bytes(const torch::nn::Module& module) {
  int64_t all = 0;
  for (const auto& parameter : module.parameters()) all += static_cast<int64_t>(parameter.nbytes());
  return std::min<int64_t>(25 << 20, all / 4);
}

// Keeps the models of all ranks alike: a DistributedDataParallel of our own.
class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    // TODO 18: all ranks start from the weights and buffers of rank 0.
    for (const auto& parameter : module.parameters()) broadcast(parameter, 0);
    for (const auto& buffer : module.buffers()) broadcast(buffer, 0);
    // TODO 21: gradients travel in a few messages, which still start early.
    const auto parameters = module.parameters();
    int64_t room = 0;
    for (auto last = parameters.rbegin(); last != parameters.rend(); ++last) {
      const auto bytes = static_cast<int64_t>(last->nbytes());
      if (bytes > room) {
        buckets_.emplace_back();
        room = bucket_bytes(module);
      }
      buckets_.back().parameters.push_back(*last);
      room -= bytes;
    }
    // TODO 20: a gradient travels as soon as it is ready.
    for (auto& bucket : buckets_) {
      for (const auto& parameter : bucket.parameters) {
        register_post_accumulate_grad_hook(parameter, [this, &bucket](const torch::Tensor&) {
          if (++bucket.ready == bucket.parameters.size()) average(bucket);
        });
      }
    }
  }
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // Comes between backward() and the optimizer's step: afterwards all gradients are the means.
  void finish() {
    for (auto& bucket : buckets_) {
      // TODO 20: a gradient travels as soon as it is ready.
      bucket.work.value().wait();
      bucket.work.reset();
      bucket.ready = 0;
      // TODO 21: gradients travel in a few messages, which still start early.
      auto rest = bucket.gradients;
      for (const auto& parameter : bucket.parameters) {
        parameter.grad().copy_(rest.slice(0, 0, parameter.numel()).view_as(parameter));
        rest = rest.slice(0, parameter.numel());
      }
    }
  }

 private:
  // Makes a bucket's gradients the means over all ranks.
  void average(Bucket& bucket) {
    // TODO 19: each gradient is the mean of all ranks' gradients.
    std::vector<torch::Tensor> parts;
    for (const auto& parameter : bucket.parameters) parts.push_back(parameter.grad().flatten());
    bucket.gradients = torch::cat(parts);
    bucket.work = all_reduce_async(bucket.gradients, ReduceOp::AVG);
  }

  std::vector<Bucket> buckets_;
};
