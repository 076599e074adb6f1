#include "distributed_utils/work.hpp"

#include <ATen/ATen.h>

namespace distributed_utils {

void Work::wait() {
  // Forgotten first, so that a wait that has thrown is not tried again either.
  const auto work = std::exchange(work_, nullptr);
  if (!work) return;
  work->wait();
  if (!buffer_.is_same(result_) && buffer_.data_ptr() != result_.data_ptr()) {
    const at::NoGradGuard no_grad;
    result_.detach().copy_(buffer_);
  }
}

bool Work::is_completed() const { return !work_ || work_->isCompleted(); }

}  // namespace distributed_utils
