//@header
#pragma once
#include <torch/torch.h>  //@include.torch

#include <algorithm>
#include <optional>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"  //@include.distributed_utils

using namespace distributed_utils;

// Parameters whose gradients travel together.
struct Bucket {
  std::vector<torch::Tensor> parameters;
  size_t ready = 0;         // how many of their gradients this backward() has computed
  torch::Tensor gradients;  // all of them in a row, while they travel
  std::optional<Work> work;  //@bucket.work
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
  explicit DataParallel(torch::nn::Module& module) {  //@constructor
    //@todo 18
#if BROADCAST
    for (const auto& parameter : module.parameters()) broadcast(parameter, 0);  //@start.parameters
    for (const auto& buffer : module.buffers()) broadcast(buffer, 0);  //@start.buffers
#endif
    //@todo 21
#if BUCKETS
    const auto parameters = module.parameters();  //@fill
    int64_t room = 0;  //@fill.room
    for (auto last = parameters.rbegin(); last != parameters.rend(); ++last) {  //@fill.loop
      const auto bytes = static_cast<int64_t>(last->nbytes());  //@fill.bytes
      if (bytes > room) {  //@fill.full
        buckets_.emplace_back();  //@fill.new
        room = bucket_bytes(module);  //@fill.limit
      }  //@fill.full_end
      buckets_.back().parameters.push_back(*last);  //@fill.add
      room -= bytes;  //@fill.take
    }  //@fill.end
#else
    for (const auto& parameter : module.parameters()) {  //@fill
      buckets_.emplace_back().parameters.push_back(parameter);  //@fill.add
    }  //@fill.end
#endif
    //@todo 20
#if HOOKS
    for (auto& bucket : buckets_) {  //@hooks
      for (const auto& parameter : bucket.parameters) {  //@hooks.each
        register_post_accumulate_grad_hook(parameter, [this, &bucket](const torch::Tensor&) {  //@hooks.register
          if (++bucket.ready == bucket.parameters.size()) average(bucket);  //@hooks.start
        });  //@hooks.register_end
      }  //@hooks.each_end
    }  //@hooks.end
#endif
  }
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  // Comes between backward() and the optimizer's step: afterwards all gradients are the means.
  void finish() {
    for (auto& bucket : buckets_) {  //@finish
      //@todo 20
#if HOOKS
      bucket.work.value().wait();  //@finish.wait
#else
      average(bucket);  //@finish.average
#endif
      bucket.work.reset();  //@finish.forget
      bucket.ready = 0;  //@finish.reset
      //@todo 21
#if BUCKETS
      auto rest = bucket.gradients;  //@unpack
      for (const auto& parameter : bucket.parameters) {  //@unpack.loop
        parameter.grad().copy_(rest.slice(0, 0, parameter.numel()).view_as(parameter));  //@unpack.copy
        rest = rest.slice(0, parameter.numel());  //@unpack.rest
      }  //@unpack.end
#endif
    }  //@finish.end
  }

 private:
  // Makes a bucket's gradients the means over all ranks.
  void average(Bucket& bucket) {  //@average.begin
    //@todo 19
#if AVERAGE
#if BUCKETS
    std::vector<torch::Tensor> parts;  //@pack
    for (const auto& parameter : bucket.parameters) parts.push_back(parameter.grad().flatten());  //@pack.add
    bucket.gradients = torch::cat(parts);  //@pack.cat
    bucket.work = all_reduce_async(bucket.gradients, ReduceOp::AVG);  //@average
#else
#if HOOKS
    bucket.work = all_reduce_async(bucket.parameters.front().grad(), ReduceOp::AVG);  //@average
#else
    all_reduce(bucket.parameters.front().grad(), ReduceOp::AVG);  //@average
#endif
#endif
#endif
  }

  std::vector<Bucket> buckets_;  //@buckets
};
