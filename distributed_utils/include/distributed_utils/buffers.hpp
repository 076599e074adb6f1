#pragma once
/// Buffers, such as BatchNorm's running statistics, that each rank changes for itself.
#include <torch/nn/module.h>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// What the floating-point buffers of all ranks become.
enum class Buffers {
  first_rank,  ///< the first rank's
  mean,        ///< the mean over ranks, in fp32 at least
};

/// Gives all ranks the same buffers, in place: floating-point ones as `how` says, whole numbers
/// (num_batches_tracked) the first rank's. One broadcast or all-reduce per type. All ranks of the
/// group call it, with the same module. Without a process group, and in a group of one rank, it
/// does nothing.
///
/// DistributedDataParallel gives all ranks rank 0's buffers before each training forward, and then
/// each rank adds its own batch. So ranks that are to evaluate alike call this before.
void synchronize_buffers(const torch::nn::Module& module, Buffers how = Buffers::first_rank,
                         const Group& group = {});

}  // namespace distributed_utils
