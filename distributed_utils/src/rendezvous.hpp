#pragma once
#include <chrono>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

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

}  // namespace distributed_utils::detail
