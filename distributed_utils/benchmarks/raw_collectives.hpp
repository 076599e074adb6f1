#pragma once
/// Collectives with nothing above the transport, over a communicator of its own: what this
/// library's calls are measured against.
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <memory>

namespace raw {

/// Of float tensors, contiguous. A call returns when the host may go on: on GPUs at once.
class Collectives {
 public:
  Collectives() = default;
  virtual ~Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  virtual void all_reduce(const at::Tensor& tensor) = 0;  ///< the sum, in place
  virtual void broadcast(const at::Tensor& tensor) = 0;   ///< from rank 0
  /// into: [world size, ...]
  virtual void all_gather(const at::Tensor& tensor, const at::Tensor& into) = 0;
};

/// Every rank calls it. The store is for this alone.
std::unique_ptr<Collectives> make_gloo(c10::intrusive_ptr<c10d::Store> store, int rank, int size);
std::unique_ptr<Collectives> make_nccl(c10::intrusive_ptr<c10d::Store> store, int rank, int size);

}  // namespace raw
