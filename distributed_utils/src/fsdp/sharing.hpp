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

  at::ScalarType compute_type(at::ScalarType stored) const {
    return c10::isFloatingType(stored) ? policy.param_dtype.value_or(stored) : stored;
  }
};

}  // namespace distributed_utils::detail
