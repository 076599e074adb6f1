#pragma once
#include <ATen/core/Tensor.h>

#include <torch/csrc/distributed/c10d/Work.hpp>
#include <utility>

namespace distributed_utils {

/// A collective or a message under way. The tensor it works on must not be touched before wait()
/// returned.
class Work {
 public:
  Work(c10::intrusive_ptr<c10d::Work> work, at::Tensor result, at::Tensor buffer)
      : work_(std::move(work)), result_(std::move(result)), buffer_(std::move(buffer)) {}
  /// Moved only: two of a kind would wait twice, and over Gloo a message that is waited for twice
  /// never comes.
  Work(Work&&) noexcept = default;
  Work& operator=(Work&&) noexcept = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work() = default;

  /// Returns when the result is there (on a GPU: when work queued after it will see it). Throws
  /// what went wrong. Calling it again does nothing.
  void wait();

  /// True once the result is there. Over Gloo a message counts as under way until wait().
  bool is_completed() const;

 private:
  c10::intrusive_ptr<c10d::Work> work_;
  at::Tensor result_;  // where the caller wants it
  at::Tensor buffer_;  // where the backend, which needs contiguous memory, puts it
};

}  // namespace distributed_utils
