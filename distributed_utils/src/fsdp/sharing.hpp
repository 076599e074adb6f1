#pragma once
/// Who shares the parameters of a FullyShardedDataParallel, and how they travel.
#include <c10/core/Stream.h>

#include <optional>

#include "distributed_utils/fsdp.hpp"

namespace distributed_utils::detail {

struct Sharing {
  Group group;
  Group replicas;  ///< null: none
  MixedPrecisionPolicy policy;
  /// On a device with streams: parameters arrive, and gradients leave, beside the computation.
  std::optional<c10::Stream> gather_stream = {};
  std::optional<c10::Stream> reduce_stream = {};
  bool backend_averages = false;  ///< NCCL divides while it adds

  int64_t ranks() const { return group->getSize(); }
  int64_t rank() const { return group->getRank(); }
  int64_t copies() const { return replicas ? replicas->getSize() : 1; }

  /// True if every rank of the world has the same whole parameters.
  bool holds_all() const;

  at::ScalarType compute_type(at::ScalarType stored) const {
    return c10::isFloatingType(stored) ? policy.param_dtype.value_or(stored) : stored;
  }
};

/// Without streams. Throws Error before setup().
Sharing make_sharing(const FullyShardedDataParallelOptions& options);

/// What depends on where the parameters are.
void add_streams(Sharing& sharing, c10::Device device);

/// Gives all ranks the values of rank 0 of the first replica.
void give_first_ranks(std::vector<at::Tensor> tensors, const Sharing& sharing);

}  // namespace distributed_utils::detail
