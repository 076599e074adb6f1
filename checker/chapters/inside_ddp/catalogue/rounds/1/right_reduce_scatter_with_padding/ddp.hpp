// An all-reduce in two halves: reduce_scatter while backward() runs, all_gather in finish().
#pragma once
#include <torch/torch.h>

#include <memory>
#include <optional>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

// How much a bucket should hold: 25 MiB, as in PyTorch, or a quarter of a model that is small.
inline int64_t bucket_bytes(const torch::nn::Module& module) {
  int64_t all = 0;
  for (const auto& parameter : module.parameters()) all += static_cast<int64_t>(parameter.nbytes());
  return std::min<int64_t>(25 << 20, all / 4);
}

class DataParallel;

struct Shipment {
  std::vector<torch::Tensor> cargo;
  size_t loaded = 0;
  torch::Tensor padded;  // its length is a multiple of the number of ranks
  torch::Tensor share;   // the part that this rank adds up
  std::optional<Work> scatter;

  void go() {
    const auto world = static_cast<int64_t>(get_world_size());
    int64_t total = 0;
    for (const auto& p : cargo) total += p.numel();
    const int64_t share_size = (total + world - 1) / world;
    padded = torch::zeros({share_size * world}, cargo[0].detach().options());
    int64_t at = 0;
    for (const auto& p : cargo) {
      padded.narrow(0, at, p.numel()).copy_(p.grad().flatten());
      at += p.numel();
    }
    share = torch::empty({share_size}, padded.options());
    scatter = reduce_scatter_async(share, padded, ReduceOp::SUM);
  }

  void arrive() {
    scatter->wait();
    scatter.reset();
    share.mul_(1.0 / get_world_size());
    const auto whole = all_gather(share).flatten();
    int64_t at = 0;
    for (const auto& p : cargo) {
      p.grad().copy_(whole.narrow(0, at, p.numel()).view(p.sizes()));
      at += p.numel();
    }
    loaded = 0;
  }
};

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    for (auto tensors : {module.parameters(), module.buffers()}) {
      for (auto& tensor : tensors) broadcast(tensor, 0);
    }
    int64_t filled = 0;
    auto parameters = module.parameters();
    for (int i = static_cast<int>(parameters.size()) - 1; i >= 0; i--) {
      const int64_t size = parameters[i].nbytes();
      if (shipments_.empty() || filled + size > bucket_bytes(module)) {
        shipments_.push_back(std::make_shared<Shipment>());
        filled = 0;
      }
      filled += size;
      auto shipment = shipments_.back();
      shipment->cargo.push_back(parameters[i]);
      register_post_accumulate_grad_hook(parameters[i], [shipment](const torch::Tensor&) {
        shipment->loaded += 1;
        if (shipment->loaded == shipment->cargo.size()) shipment->go();
      });
    }
  }

  void finish() {
    for (auto& shipment : shipments_) shipment->arrive();
  }

 private:
  std::vector<std::shared_ptr<Shipment>> shipments_;
};
