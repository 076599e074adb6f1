#pragma once
/// Work: the handle that asynchronous collectives and messages return. Call wait() before you use
/// the tensor.
#include <ATen/core/Tensor.h>

#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

namespace distributed_utils {

/// A running collective or message. Do not touch its tensor before wait() has returned.
class Work {
 public:
  Work(c10::intrusive_ptr<c10d::Work> work, at::Tensor result, at::Tensor buffer)
      : work_(std::move(work)), result_(std::move(result)), buffer_(std::move(buffer)) {}
  /// It can be moved but not copied. Two copies would wait twice, and over Gloo the second wait for
  /// a message never returns.
  Work(Work&&) noexcept = default;
  Work& operator=(Work&&) noexcept = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() = default;

  /// Returns when the result is ready. On a GPU it returns when later work will see the result.
  /// Throws what went wrong. Calling it again does nothing.
  void wait();

  /// True once the result is ready. Over Gloo a message counts as running until wait().
  bool is_completed() const;

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  at::Tensor result_;  // where the caller wants it
  at::Tensor buffer_;  // where the backend, which needs contiguous memory, puts it
};

}  // namespace distributed_utils
