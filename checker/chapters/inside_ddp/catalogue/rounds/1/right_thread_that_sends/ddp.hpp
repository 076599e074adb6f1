// A thread of its own sends the buckets, one after the other, while backward() goes on.
#pragma once
#include <torch/torch.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "distributed_utils/distributed_utils.hpp"

using namespace distributed_utils;

inline int64_t bucket_bytes(const torch::nn::Module& module) {
  int64_t all = 0;
  for (const auto& parameter : module.parameters()) all += static_cast<int64_t>(parameter.nbytes());
  return std::min<int64_t>(25 << 20, all / 4);
}

// Averages tensors in the order in which they are handed over.
class Postman {
 public:
  Postman() : thread_([this] { deliver(); }) {}
  ~Postman() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void post(const torch::Tensor& letter) {
    {
      const std::lock_guard lock(mutex_);
      box_.push_back(letter);
      ++open_;
    }
    changed_.notify_all();
  }
  void wait_for_all() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_ == 0; });
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void deliver() {
    const torch::NoGradGuard no_grad;
    while (true) {
      torch::Tensor letter;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stop_ || !box_.empty(); });
        if (box_.empty()) return;
        letter = box_.front();
        box_.pop_front();
      }
      try {
        all_reduce(letter, ReduceOp::SUM);
        letter.div_(get_world_size());
      } catch (...) {
        const std::lock_guard lock(mutex_);
        error_ = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex_);
        --open_;
      }
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<torch::Tensor> box_;
  int open_ = 0;
  bool stop_ = false;
  std::exception_ptr error_;
  std::thread thread_;
};

class DataParallel {
 public:
  explicit DataParallel(torch::nn::Module& module) {
    for (const auto& parameter : module.parameters()) broadcast(parameter, 0);
    for (const auto& buffer : module.buffers()) broadcast(buffer, 0);

    const auto parameters = module.parameters();
    const auto limit = bucket_bytes(module);
    int64_t bytes = 0;
    for (auto p = parameters.crbegin(); p != parameters.crend(); ++p) {
      bytes += static_cast<int64_t>(p->nbytes());
      if (parcels_.empty() || bytes > limit) {
        parcels_.emplace_back();
        bytes = static_cast<int64_t>(p->nbytes());
      }
      auto& parcel = parcels_.back();
      parcel.contents.push_back(*p);
      register_post_accumulate_grad_hook(*p, [this, &parcel](const torch::Tensor&) {
        if (++parcel.ready < parcel.contents.size()) return;
        std::vector<torch::Tensor> parts;
        for (const auto& q : parcel.contents) parts.push_back(q.grad().flatten());
        parcel.letter = torch::cat(parts);
        postman_.post(parcel.letter);
      });
    }
  }
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  void finish() {
    postman_.wait_for_all();
    for (auto& parcel : parcels_) {
      parcel.ready = 0;
      int64_t at = 0;
      for (const auto& q : parcel.contents) {
        q.grad().copy_(parcel.letter.narrow(0, at, q.numel()).view_as(q));
        at += q.numel();
      }
    }
  }

 private:
  struct Parcel {
    std::vector<torch::Tensor> contents;
    size_t ready = 0;
    torch::Tensor letter;
  };
  std::deque<Parcel> parcels_;  // a deque's elements stay where they are
  Postman postman_;
};
