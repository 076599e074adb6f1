#pragma once
/// Communication hooks: what DistributedDataParallel does with a bucket of gradients instead of an
/// all-reduce. They are Python's torch.distributed.algorithms.ddp_comm_hooks.
#include <functional>

#include "distributed_utils/process_group.hpp"

namespace c10d {
class GradBucket;  // torch/csrc/distributed/c10d/comm.hpp
}

namespace distributed_utils {

/// Gets the group and a bucket with this rank's undivided gradients. Returns a future of the tensor
/// that replaces them, of the bucket's shape and type. backward() calls it for each bucket, in the
/// same order on all ranks, and continues meanwhile.
using CommHook = std::function<c10::intrusive_ptr<c10::ivalue::Future>(const Group& group,
                                                                       c10d::GradBucket& bucket)>;

/// Averages the gradients, sent as bfloat16: half of float's bytes, with float's range and 8 bits
/// of precision. Each rank's part, and each partial sum, has a relative error of at most 2^-8. All
/// ranks get the same bits. It helps where the network, not the GPU, limits the speed.
c10::intrusive_ptr<c10::ivalue::Future> bf16_compress_hook(const Group& group,
                                                           c10d::GradBucket& bucket);

}  // namespace distributed_utils
