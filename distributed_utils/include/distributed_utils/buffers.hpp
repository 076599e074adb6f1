#pragma once
/// Makes buffers equal on all ranks. Buffers, such as BatchNorm's running statistics, change on
/// each rank separately, because no gradient averages them.
#include <torch/nn/module.h>

#include "distributed_utils/process_group.hpp"

namespace distributed_utils {

/// What the floating-point buffers of all ranks become.
enum class Buffers {
  first_rank,  ///< the first rank's
  mean,        ///< the mean over ranks, in fp32 at least
};

/// Gives all ranks the same buffers, in place. Floating-point buffers follow `how`. Integer buffers
/// (num_batches_tracked) become the first rank's. It makes one broadcast or all-reduce per type.
/// All ranks of the group must call it, with the same module. Without a process group, or in a
/// group of one rank, it does nothing.
///
/// DistributedDataParallel gives all ranks rank 0's buffers before each training forward. Then each
/// rank adds its own batch. So call this before an evaluation, or each rank evaluates a different
/// model.
void synchronize_buffers(const torch::nn::Module& module, Buffers how = Buffers::first_rank,
                         const Group& group = {});

}  // namespace distributed_utils
