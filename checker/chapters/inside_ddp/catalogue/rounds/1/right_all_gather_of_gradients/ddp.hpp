// Everybody sees everybody's gradients (all_gather) and takes the mean for himself.
#pragma once
#include <torch/torch.h>

#include <functional>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

inline int64_t bucket_bytes(const torch::nn::Module& module) {
  int64_t all = 0;
  for (const auto& parameter : module.parameters()) all += static_cast<int64_t>(parameter.nbytes());
  return std::min<int64_t>(25 << 20, all / 4);
}

class DataParallel {
  using Tensors = std::vector<torch::Tensor>;

 public:
  explicit DataParallel(torch::nn::Module& module) {
    {
      const torch::NoGradGuard no_grad;
      for (auto& p : module.parameters()) p.copy_(all_gather(p)[0]);
      for (auto& b : module.buffers()) b.copy_(all_gather(b)[0]);
    }
    plan(module);
    arrived_.assign(plan_.size(), 0);
    mine_.resize(plan_.size());
    theirs_.resize(plan_.size());
    for (size_t number = 0; number < plan_.size(); ++number) {
      for (const auto& p : plan_[number]) {
        register_post_accumulate_grad_hook(
            p, std::bind(&DataParallel::one_more, this, number, std::placeholders::_1));
      }
    }
  }
  DataParallel(const DataParallel&) = delete;

  void finish() {
    // Works are in the order in which the buckets became full.
    for (auto& [number, work] : travelling_) {
      work.wait();
      const auto mean = theirs_[number].mean(0);
      int64_t cut = 0;
      for (auto& p : plan_[number]) {
        p.mutable_grad().copy_(mean.slice(0, cut, cut + p.numel()).reshape(p.sizes()));
        cut += p.numel();
      }
      arrived_[number] = 0;
    }
    travelling_.clear();
  }

 private:
  void plan(const torch::nn::Module& module) {
    auto todo = module.parameters();
    const auto limit = static_cast<size_t>(bucket_bytes(module));
    while (!todo.empty()) {
      Tensors together;
      size_t bytes = 0;
      do {
        bytes += todo.back().nbytes();
        together.push_back(todo.back());
        todo.pop_back();
      } while (!todo.empty() && bytes + todo.back().nbytes() <= limit);
      plan_.push_back(together);
    }
  }

  void one_more(size_t number, const torch::Tensor&) {
    if (++arrived_[number] != plan_[number].size()) return;
    Tensors flat;
    for (auto& p : plan_[number]) flat.push_back(p.grad().flatten());
    mine_[number] = torch::cat(flat);
    theirs_[number] = torch::empty({get_world_size(), mine_[number].numel()}, mine_[number].options());
    travelling_.emplace_back(number, all_gather_async(theirs_[number], mine_[number]));
  }

  std::vector<Tensors> plan_;
  std::vector<size_t> arrived_;
  Tensors mine_, theirs_;
  std::vector<std::pair<size_t, Work>> travelling_;
};
