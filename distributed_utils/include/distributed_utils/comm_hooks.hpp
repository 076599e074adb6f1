#pragma once
/// What DistributedDataParallel may do with a bucket of gradients instead of an all-reduce:
/// Python's torch.distributed.algorithms.ddp_comm_hooks.
#include <functional>

#include "distributed_utils/process_group.hpp"

namespace c10d {
class GradBucket;  // torch/csrc/distributed/c10d/comm.hpp
}

namespace distributed_utils {

/// Gets the group and a bucket with this rank's gradients, not yet divided by anything; returns a
/// future of the tensor that takes their place, of the bucket's shape and type. backward() calls it
/// for one bucket after the other, in the same order on all ranks, and goes on meanwhile.
using CommHook = std::function<c10::intrusive_ptr<c10::ivalue::Future>(const Group& group,
                                                                       c10d::GradBucket& bucket)>;

/// The average, travelling as bfloat16: half of float's bytes, with float's range and 8 bits of
/// precision. Each rank's part, and each sum on the way, is off by at most 2^-8 of itself. All
/// ranks get the same bits. Pays where the network, not the GPU, sets the pace.
c10::intrusive_ptr<c10::ivalue::Future> bf16_compress_hook(const Group& group,
                                                           c10d::GradBucket& bucket);

}  // namespace distributed_utils
