// No plan: a bucket is whatever has gathered when the next gradient no longer fits. backward() runs the
// same way on all ranks, so all of them gather the same.
#pragma once
#include <torch/torch.h>

#include <utility>
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
  explicit DataParallel(torch::nn::Module& module)
      : limit_(bucket_bytes(module)), expected_(module.parameters().size()) {
    // Rank 0 sends to each of the others, one after the other.
    auto tensors = module.parameters();
    const auto buffers = module.buffers();
    tensors.insert(tensors.end(), buffers.begin(), buffers.end());
    for (const auto& tensor : tensors) {
      if (get_rank() == 0) {
        for (int other = 1; other < get_world_size(); ++other) send(tensor.detach(), other);
      } else {
        recv(tensor.detach(), 0);
      }
    }
    for (const auto& parameter : module.parameters()) {
      register_post_accumulate_grad_hook(parameter,
                                         [this](const torch::Tensor& p) { gather(p); });
    }
  }
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  void finish() {
    for (auto& sent : sent_) {
      sent.work.wait();
      sent.flat.div_(get_world_size());
      auto rest = sent.flat;
      for (const auto& p : sent.members) {
        p.grad().copy_(rest.slice(0, 0, p.numel()).view_as(p));
        rest = rest.slice(0, p.numel());
      }
    }
    sent_.clear();
    seen_ = 0;
  }

 private:
  struct Sent {
    std::vector<torch::Tensor> members;
    torch::Tensor flat;
    Work work;
  };

  void gather(const torch::Tensor& p) {
    const auto bytes = static_cast<int64_t>(p.nbytes());
    if (!open_.empty() && bytes_ + bytes > limit_) ship();
    open_.push_back(p);
    bytes_ += bytes;
    if (++seen_ == expected_) ship();
  }

  void ship() {
    std::vector<torch::Tensor> parts;
    for (const auto& p : open_) parts.push_back(p.grad().reshape({-1}));
    auto flat = torch::cat(parts);
    auto work = all_reduce_async(flat, ReduceOp::SUM);
    sent_.push_back({std::exchange(open_, {}), flat, std::move(work)});
    bytes_ = 0;
  }

  int64_t limit_;
  size_t expected_;
  size_t seen_ = 0;
  int64_t bytes_ = 0;
  std::vector<torch::Tensor> open_;
  std::vector<Sent> sent_;
};
