#include "fsdp/sharing.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <torch/csrc/distributed/c10d/comm.hpp>

namespace distributed_utils::detail {
namespace {

// As in Python's DDP: states travel in pieces of this size.
constexpr size_t kSynchronizeBytes = size_t{250} << 20;

}  // namespace

bool Sharing::holds_all() const { return ranks() == 1 && copies() == get_world_size(); }

Sharing make_sharing(const FullyShardedDataParallelOptions& options) {
  Sharing sharing;
  sharing.group = group_or_world(options.group);
  if (options.replicate_group) sharing.replicas = group_or_world(options.replicate_group);
  sharing.policy = options.mp_policy;
  return sharing;
}

void add_streams(Sharing& sharing, c10::Device device) {
  const auto backend = sharing.group->getBackend(device.type());
  sharing.backend_averages = backend->getBackendName() == "nccl";
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  sharing.gather_stream = guard.getStreamFromGlobalPool(device, /*isHighPriority=*/true);
  sharing.reduce_stream = guard.getStreamFromGlobalPool(device, /*isHighPriority=*/true);
}

void give_first_ranks(std::vector<at::Tensor> tensors, const Sharing& sharing) {
  if (tensors.empty()) return;
  if (sharing.copies() > 1) {
    c10d::broadcast_coalesced(sharing.replicas, tensors, kSynchronizeBytes);
  }
  if (sharing.ranks() > 1) c10d::broadcast_coalesced(sharing.group, tensors, kSynchronizeBytes);
}

}  // namespace distributed_utils::detail
