// Step 08: gradients are pasted into a buffer that stays
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

struct Buffer {
  std::vector<torch::Tensor> parameters;
  torch::Tensor memory;
  size_t filled = 0;
  std::vector<Work> works;
};

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    for (const auto& p : module.parameters()) broadcast(p, 0);
    for (const auto& b : module.buffers()) broadcast(b, 0);
    assign(module);
    for (auto& buffer : buffers_) {
      Buffer* b = buffer.get();
      int64_t n = 0;
      for (const auto& p : b->parameters) {
        const int64_t from = n;
        n += p.numel();
        register_post_accumulate_grad_hook(p, [b, from](const torch::Tensor& q) {
          b->memory.slice(0, from, from + q.numel()).copy_(q.grad().flatten());
          b->filled++;
          if (b->filled >= b->parameters.size()) {
            b->works.push_back(all_reduce_async(b->memory, ReduceOp::AVG));
          }
        });
      }
      b->memory = torch::zeros({n}, b->parameters[0].detach().options());
    }
  }

  void finish() {
    for (auto& b : buffers_) {
      for (auto& work : b->works) work.wait();
      b->works.clear();
      int64_t n = 0;
      for (const auto& p : b->parameters) {
        p.grad().copy_(b->memory.slice(0, n, n + p.numel()).view_as(p));
        n += p.numel();
      }
    }
  }

 private:
  void assign(const torch::nn::Module& module) {
    auto all = module.parameters();
    std::reverse(all.begin(), all.end());
    int64_t used = 0;
    for (const auto& p : all) {
      if (buffers_.empty() || used + static_cast<int64_t>(p.nbytes()) > bucket_bytes(module)) {
        buffers_.push_back(std::make_unique<Buffer>());
        used = 0;
      }
      buffers_.back()->parameters.push_back(p);
      used += static_cast<int64_t>(p.nbytes());
    }
  }
  std::vector<std::unique_ptr<Buffer>> buffers_;
};
