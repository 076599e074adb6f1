#pragma once
#include <atomic>
#include <chrono>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "recorded_call.hpp"

namespace distributed_utils::detail {

/// For works without a future (Gloo's send, recv and _reduce_scatter_base, which does its work
/// inside wait()): records the end of the first wait().
class WaitedWork : public c10d::Work {
 public:
  WaitedWork(c10::intrusive_ptr<c10d::Work> work, uint32_t group, uint64_t sequence)
      : work_(std::move(work)), group_(group), sequence_(sequence) {}

  bool wait(std::chrono::milliseconds timeout) override {
    try {
      const bool success = work_->wait(timeout);
      record_once(!success);
      return success;
    } catch (...) {
      record_once(true);
      throw;
    }
  }
  bool isCompleted() override { return work_->isCompleted(); }
  bool isSuccess() const override { return work_->isSuccess(); }
  std::exception_ptr exception() const override { return work_->exception(); }
  int sourceRank() const override { return work_->sourceRank(); }
  std::vector<at::Tensor> result() override { return work_->result(); }
  void synchronize() override { work_->synchronize(); }
  void abort() override { work_->abort(); }
  uint64_t getSequencenumber() const override { return work_->getSequencenumber(); }

 private:
  void record_once(bool failed) {
    if (!recorded_.exchange(true)) record_completed(group_, sequence_, failed);
  }

  c10::intrusive_ptr<c10d::Work> work_;
  uint32_t group_;
  uint64_t sequence_;
  std::atomic<bool> recorded_ = false;
};

}  // namespace distributed_utils::detail
