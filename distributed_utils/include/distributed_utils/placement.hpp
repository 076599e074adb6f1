#pragma once
/// Placement tells which piece of a global tensor a rank holds. Code that saves, loads or checks a
/// model asks for placements, so it needs no knowledge of DistributedDataParallel or other
/// wrappers.
#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

namespace distributed_utils {

/// The piece of a global tensor that this rank holds.
struct Placement {
  std::string name;   ///< of the global tensor: the same as in a serial run
  at::Tensor tensor;  ///< the piece: the parameter or buffer itself
  std::vector<int64_t> global_shape = {};
  std::vector<int64_t> offset = {};  ///< of the piece's first element, along each dimension
  /// Every rank holds this same piece, so that rank 0's stands for all. Otherwise ranks may hold
  /// different pieces, or this tensor may be on some ranks only.
  bool replicated = true;
};

/// To be inherited by a torch::nn::Module that wraps another one or holds parts of its tensors.
class Placed {
 public:
  virtual ~Placed() = default;

  /// Placements of all parameters and buffers, in the order of named_parameters(), with the names
  /// of a model that is not distributed.
  virtual std::vector<Placement> placements() const = 0;

  /// The buckets in which gradients will travel (DistributedDataParallelOptions::bucket_indices),
  /// settled now; empty where there are none. Every rank calls it, between two steps.
  virtual std::vector<std::vector<size_t>> settle_buckets() { return {}; }

  /// Called after something was loaded into the pieces, so copies of them are out of date. It makes
  /// no collective.
  virtual void pieces_were_loaded() {}
};

/// The pieces of a module's parameters and buffers. The module and its submodules report them by
/// being Placed. Every other tensor is whole and replicated.
std::vector<Placement> placements(const torch::nn::Module& module);

}  // namespace distributed_utils
