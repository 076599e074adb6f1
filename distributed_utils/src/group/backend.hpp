#pragma once
/// Backend factories: everything that makes a c10d backend comes through here.
#include <chrono>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

namespace distributed_utils::detail {

struct BackendRequest {
  c10::intrusive_ptr<c10d::Store> store;
  int rank;
  int size;
  std::chrono::milliseconds timeout;
  bool single_node;
};

/// Throws Error in a build that found no gloo headers.
c10::intrusive_ptr<c10d::Backend> make_gloo(const BackendRequest& request);

/// False in a build that found no gloo headers.
bool has_gloo();

/// Throws Error in a build without CUDA.
c10::intrusive_ptr<c10d::Backend> make_nccl(const BackendRequest& request);

/// True in a build with CUDA.
bool has_nccl();

}  // namespace distributed_utils::detail
