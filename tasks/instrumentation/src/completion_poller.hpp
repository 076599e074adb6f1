#pragma once
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "calls.hpp"

namespace instrumentation {

/// Has the end of a work recorded that runs on a GPU: its future is done once the kernel is queued,
/// so a thread of its own asks the work itself, every few milliseconds.
void record_end_by_polling(c10::intrusive_ptr<c10d::Work> work, CallId call);

}  // namespace instrumentation
