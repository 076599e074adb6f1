#pragma once
#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "distributed_utils/launch.hpp"

namespace distributed_utils::detail {

struct Rendezvous {
  c10::intrusive_ptr<c10d::Store> store;
  bool rank_zero_serves = false;  ///< it ends with rank 0
};

/// Where all ranks of the world meet: a store that every one of them has come to. Throws Error for
/// an init_method that is none, a host that is not known, a port that is taken, and when ranks,
/// which it names, have not come within the time-out.
Rendezvous meet(const std::string& init_method, const Launch& launch,
                std::chrono::milliseconds timeout);

/// In the store: this rank has come to "what".
void leave_mark(c10d::Store& store, const std::string& what, int rank);

/// The ranks that have not come there yet, in order.
std::vector<int> ranks_without_mark(c10d::Store& store, const std::string& what, int world_size);

}  // namespace distributed_utils::detail
