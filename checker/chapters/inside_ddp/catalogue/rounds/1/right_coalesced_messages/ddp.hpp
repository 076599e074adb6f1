// c10d can send a list of tensors as one message (allreduce_coalesced): no copies of my own.
#pragma once
#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <unordered_map>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

inline int64_t bucket_bytes(const torch::nn::Module& module) {
  int64_t all = 0;
  for (const auto& parameter : module.parameters()) all += static_cast<int64_t>(parameter.nbytes());
  return std::min<int64_t>(25 << 20, all / 4);
}

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) : group_(world_group()) {
    std::vector<at::Tensor> everything;
    for (auto& p : module.parameters()) everything.push_back(p.detach());
    for (auto& b : module.buffers()) everything.push_back(b.detach());
    for (auto& t : everything) {
      std::vector<at::Tensor> one{t};
      group_->broadcast(one)->wait();  // rootRank is 0 by default
    }

    auto ps = module.parameters();
    const auto room = static_cast<size_t>(bucket_bytes(module));
    size_t used = 0;
    for (size_t k = 0; k < ps.size(); ++k) {
      auto& p = ps[ps.size() - 1 - k];
      if (k == 0 || used + p.nbytes() > room) {
        used = 0;
        sets_.emplace_back();
        left_.push_back(0);
      }
      used += p.nbytes();
      sets_.back().push_back(p);
      left_.back()++;
      const size_t s = sets_.size() - 1;
      register_post_accumulate_grad_hook(p, [this, s](const at::Tensor&) {
        if (--left_[s] == 0) start(s);
      });
    }
  }
  DataParallel(const DataParallel&) = delete;

  void finish() {
    for (auto& [s, work] : works_) {
      work->wait();
      for (auto& p : sets_[s]) p.mutable_grad().div_(group_->getSize());
      left_[s] = sets_[s].size();
    }
    works_.clear();
  }

 private:
  void start(size_t s) {
    std::vector<at::Tensor> gradients;
    for (auto& p : sets_[s]) {
      if (!p.grad().is_contiguous()) p.mutable_grad() = p.grad().contiguous();
      gradients.push_back(p.grad());
    }
    works_.emplace_back(s, group_->allreduce_coalesced(gradients));
  }

  Group group_;
  std::vector<std::vector<at::Tensor>> sets_;
  std::vector<size_t> left_;
  std::vector<std::pair<size_t, c10::intrusive_ptr<c10d::Work>>> works_;
};
