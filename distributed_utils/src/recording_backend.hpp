#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <vector>

namespace distributed_utils::detail {

/// A group in the log. All backends of a group share one, so that its collectives are numbered in
/// the order in which the program issued them.
struct RecordedGroup {
  explicit RecordedGroup(uint32_t n) : number(n) {}

  uint32_t number;
  std::atomic<uint64_t> next_sequence = 0;
};

/// Records a new group; null when the process does not record. ranks: of the world; rank: this
/// one's index among them.
std::shared_ptr<RecordedGroup> record_group(const std::string& name, const std::vector<int>& ranks,
                                            int rank);

/// A backend that records each collective and passes it on; `backend` itself if group is null.
c10::intrusive_ptr<c10d::Backend> wrap_recorded(c10::intrusive_ptr<c10d::Backend> backend,
                                                std::shared_ptr<RecordedGroup> group);

}  // namespace distributed_utils::detail
