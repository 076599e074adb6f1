#pragma once
/// Parameters and buffers that need no DistributedDataParallel, because a module knows a cheaper
/// way to keep them the same on all ranks.
#include <ATen/core/Tensor.h>

#include <vector>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// To be inherited by a torch::nn::Module. In Python somebody names such parameters to
/// DistributedDataParallel (_set_params_and_buffers_to_ignore_for_model); here the module itself
/// does, once it knows the ranks.
class SelfSynchronized {
 public:
  virtual ~SelfSynchronized() = default;

  /// DistributedDataParallel calls this when it wraps the module, or one that it is part of, on
  /// every rank of a group of several, after it has given all ranks rank 0's values. Returns those
  /// of the module's own parameters and buffers that it leaves alone from then on: parameters to
  /// whose gradients every backward() adds the average over the group, the same bits on all ranks,
  /// also under no_sync() and past any CommHook; and buffers that stay the same on all ranks.
  virtual std::vector<at::Tensor> synchronize_over(const Group& group) = 0;
};

}  // namespace distributed_utils
