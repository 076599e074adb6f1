// Step 08, my own DDP. Every bucket owns one strip of memory, the hooks paste gradients into it.
#pragma once
#include <torch/torch.h>

#include <memory>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

inline int64_t bucket_bytes(const torch::nn::Module& module) {
  int64_t all = 0;
  for (const auto& parameter : module.parameters()) all += static_cast<int64_t>(parameter.nbytes());
  return std::min<int64_t>(25 << 20, all / 4);
}

class Strip {
 public:
  struct Slot {
    torch::Tensor owner;
    int64_t offset;
  };

  bool fits(const torch::Tensor& p, int64_t limit) const {
    return slots_.empty() || static_cast<int64_t>((length_ + p.numel()) * p.element_size()) <= limit;
  }
  size_t add(const torch::Tensor& p) {
    slots_.push_back({p, length_});
    length_ += p.numel();
    return slots_.size() - 1;
  }
  void allocate() {
    memory_ = torch::zeros({length_}, slots_.front().owner.detach().options());
    missing_ = slots_.size();
  }
  void arrived(size_t which) {
    const auto& slot = slots_[which];
    memory_.narrow(0, slot.offset, slot.owner.numel()).copy_(slot.owner.grad().reshape({-1}));
    if (--missing_ == 0) message_.push_back(all_reduce_async(memory_, ReduceOp::SUM));
  }
  void land(int world) {
    for (auto& m : message_) m.wait();
    message_.clear();
    memory_ /= world;
    for (const auto& slot : slots_) {
      slot.owner.grad().copy_(
          memory_.narrow(0, slot.offset, slot.owner.numel()).reshape(slot.owner.sizes()));
    }
    missing_ = slots_.size();
  }

 private:
  std::vector<Slot> slots_;
  int64_t length_ = 0;
  size_t missing_ = 0;
  torch::Tensor memory_;
  std::vector<Work> message_;
};

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    // everybody takes what rank 0 has
    auto state = module.parameters();
    for (auto& b : module.buffers()) state.push_back(b);
    std::vector<Work> sends;
    for (auto& t : state) sends.push_back(broadcast_async(t, 0));
    for (auto& s : sends) s.wait();

    const int64_t limit = bucket_bytes(module);
    auto params = module.parameters();
    strips_.push_back(std::make_unique<Strip>());
    for (size_t i = params.size(); i-- > 0;) {
      if (!strips_.back()->fits(params[i], limit)) strips_.push_back(std::make_unique<Strip>());
      Strip* strip = strips_.back().get();
      const size_t slot = strip->add(params[i]);
      register_post_accumulate_grad_hook(params[i],
                                         [strip, slot](const torch::Tensor&) { strip->arrived(slot); });
    }
    for (auto& strip : strips_) strip->allocate();
  }

  void finish() {
    const int world = get_world_size();
    for (auto& strip : strips_) strip->land(world);
  }

 private:
  std::vector<std::unique_ptr<Strip>> strips_;
};
