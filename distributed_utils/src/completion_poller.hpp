#pragma once
#include <cstdint>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace distributed_utils::detail {

/// Has the end of a work recorded that runs on a GPU: its future is done once the kernel is queued,
/// so a thread of its own asks the work itself, every few milliseconds.
void record_end_by_polling(c10::intrusive_ptr<c10d::Work> work, uint32_t group, uint64_t sequence);

}  // namespace distributed_utils::detail
