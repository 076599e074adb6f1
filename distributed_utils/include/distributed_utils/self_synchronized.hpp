#pragma once
/// SelfSynchronized: for modules that keep some of their parameters equal on all ranks themselves,
/// in a cheaper way than DistributedDataParallel.
#include <ATen/core/Tensor.h>

#include <vector>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// A base class for a torch::nn::Module. In Python the caller tells DistributedDataParallel which
/// parameters to ignore (_set_params_and_buffers_to_ignore_for_model). Here the module itself does,
/// once it knows the ranks.
class SelfSynchronized {
 public:
  virtual ~SelfSynchronized() = default;

  /// DistributedDataParallel calls this on every rank when it wraps the module, or a module that
  /// contains it, after it has copied rank 0's values to all ranks. It does not call it in a group
  /// of one rank. Returns the parameters and buffers that DistributedDataParallel must leave alone.
  /// For these parameters, every backward() must add the average over the group to the gradient,
  /// with the same bits on all ranks, also under no_sync() and with any CommHook. These buffers
  /// must stay equal on all ranks.
  virtual std::vector<at::Tensor> synchronize_over(const Group& group) = 0;
};

}  // namespace distributed_utils
