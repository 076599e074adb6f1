#pragma once
#include <atomic>
#include <chrono>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>
#include <vector>

#include "calls.hpp"

namespace instrumentation {

/// A work whose waits are recorded. told: its end is recorded by other means; else the end of the
/// first wait() stands for it: Gloo's send, recv and _reduce_scatter_base, which does its work
/// inside wait(), have no future.
class ObservedWork : public c10d::Work {
 public:
  ObservedWork(c10::intrusive_ptr<c10d::Work> work, CallId call, bool told)
      : Work(-1, work->retrieveOpType()), work_(std::move(work)), call_(call), told_(told) {}

  bool wait(std::chrono::milliseconds timeout) override {
    record_waited(call_, kWaits);
    try {
      const bool success = work_->wait(timeout);
      record_end(!success);
      record_waited(call_, kWaited);
      return success;
    } catch (...) {
      record_end(true);
      throw;
    }
  }
  void synchronize() override {
    record_waited(call_, kWaits);
    work_->synchronize();
    record_waited(call_, kWaited);
  }

  bool isCompleted() override {
    const bool completed = work_->isCompleted();
    if (completed) record_waited(call_, kWaited);
    return completed;
  }
  bool isSuccess() const override { return work_->isSuccess(); }
  std::exception_ptr exception() const override { return work_->exception(); }
  int sourceRank() const override { return work_->sourceRank(); }
  std::vector<at::Tensor> result() override { return work_->result(); }
  void blockCurrentStream() override { work_->blockCurrentStream(); }
  void abort() override { work_->abort(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override {
    record_waited(call_, kFutureTaken);
    return work_->getFuture();
  }
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override {
    record_waited(call_, kFutureTaken);
    return work_->getFutureResult();
  }
  float getDuration() const override { return work_->getDuration(); }
  uint64_t getSequencenumber() const override { return work_->getSequencenumber(); }

 private:
  static constexpr uint32_t kWaits = 0, kWaited = 1;

  void record_end(bool failed) {
    if (!told_.exchange(true)) record_completed(call_, failed);
  }

  c10::intrusive_ptr<c10d::Work> work_;
  CallId call_;
  std::atomic<bool> told_;
};

}  // namespace instrumentation
