// Step 08: gradients are summed and divided by the two ranks
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

struct Packet {
  std::vector<torch::Tensor> params;
  size_t ready = 0;
  torch::Tensor data;
  std::unique_ptr<Work> work;
};

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    for (auto& p : module.parameters()) broadcast(p, 0);
    for (auto& b : module.buffers()) broadcast(b, 0);
    int64_t size = bucket_bytes(module) + 1;
    std::vector<torch::Tensor> params = module.parameters();
    std::reverse(params.begin(), params.end());
    for (auto& p : params) {
      const int64_t bytes = p.numel() * p.element_size();
      if (size + bytes > bucket_bytes(module)) {
        packets_.push_back(std::make_unique<Packet>());
        size = 0;
      }
      packets_.back()->params.push_back(p);
      size += bytes;
    }
    for (auto& packet : packets_) {
      Packet* k = packet.get();
      for (auto& p : k->params) {
        register_post_accumulate_grad_hook(p, [this, k](const torch::Tensor&) {
          k->ready++;
          if (k->ready == k->params.size()) average(*k);
        });
      }
    }
  }

  void finish() {
    for (auto& k : packets_) {
      k->work->wait();
      k->data.mul_(0.5);  // the mean
      int64_t i = 0;
      for (auto& p : k->params) {
        p.grad().copy_(k->data.slice(0, i, i + p.numel()).view_as(p));
        i += p.numel();
      }
      k->ready = 0;
    }
  }

 private:
  void average(Packet& k) {
    std::vector<torch::Tensor> flat;
    for (auto& p : k.params) flat.push_back(p.grad().flatten());
    k.data = torch::cat(flat);
    k.work = std::make_unique<Work>(all_reduce_async(k.data));
  }
  std::vector<std::unique_ptr<Packet>> packets_;
};
