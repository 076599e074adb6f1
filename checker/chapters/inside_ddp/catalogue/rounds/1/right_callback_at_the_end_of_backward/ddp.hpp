// One flat tensor for the whole model. Buckets are ranges [from, to) of it.
// backward() itself waits at its very end, through a callback of the autograd engine.
#pragma once
#include <torch/csrc/autograd/engine.h>
#include <torch/torch.h>

#include <list>
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
  explicit DataParallel(torch::nn::Module& module) : parameters_(module.parameters()) {
    for (const auto& item : module.named_parameters()) broadcast(item.value(), 0);
    for (const auto& item : module.named_buffers()) broadcast(item.value(), 0);

    const auto size = static_cast<int64_t>(parameters_.front().element_size());
    const auto cap = bucket_bytes(module) / size;
    begin_.resize(parameters_.size());
    range_of_.resize(parameters_.size());
    int64_t position = 0;
    for (auto i = static_cast<int64_t>(parameters_.size()) - 1; i >= 0; --i) {
      const auto n = parameters_[i].numel();
      if (ranges_.empty() || position + n - ranges_.back().from > cap) {
        ranges_.push_back({position, position, 0, 0});
      }
      begin_[i] = position;
      range_of_[i] = ranges_.size() - 1;
      position += n;
      ranges_.back().to = position;
      ranges_.back().members++;
    }
    flat_ = torch::empty({position}, parameters_.front().detach().options());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      register_post_accumulate_grad_hook(parameters_[i],
                                         [this, i](const torch::Tensor& p) { collect(i, p); });
    }
  }
  DataParallel(const DataParallel&) = delete;

  void finish() {
    // all was done at the end of backward()
  }

 private:
  struct Range {
    int64_t from, to;
    int members, seen;
  };

  void collect(size_t i, const torch::Tensor& p) {
    if (!queued_) {
      queued_ = true;
      torch::autograd::Engine::get_default_engine().queue_callback([this] { settle(); });
    }
    flat_.slice(0, begin_[i], begin_[i] + p.numel()).copy_(p.grad().flatten());
    auto& range = ranges_[range_of_[i]];
    if (++range.seen < range.members) return;
    works_.push_back(all_reduce_async(flat_.slice(0, range.from, range.to), ReduceOp::AVG));
  }

  void settle() {
    const torch::NoGradGuard no_grad;
    for (auto& work : works_) work.wait();
    works_.clear();
    for (auto& range : ranges_) range.seen = 0;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      auto& p = parameters_[i];
      p.mutable_grad().copy_(flat_.slice(0, begin_[i], begin_[i] + p.numel()).view(p.sizes()));
    }
    queued_ = false;
  }

  std::vector<torch::Tensor> parameters_;
  std::vector<int64_t> begin_;
  std::vector<size_t> range_of_;
  std::vector<Range> ranges_;
  torch::Tensor flat_;
  std::list<Work> works_;
  bool queued_ = false;
};
