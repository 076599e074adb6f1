#pragma once
/// Decides which parameters travel together. Users know them as indices into all trainable
/// parameters, the reducer into those that it averages.
#include <ATen/core/Tensor.h>

#include <vector>

#include "distributed_utils/ddp.hpp"

namespace distributed_utils::detail {

using Buckets = std::vector<std::vector<size_t>>;

/// Of the reducer, until it has seen the first backward().
Buckets default_buckets(const std::vector<at::Tensor>& parameters,
                        const DistributedDataParallelOptions& options);

/// Throws Error unless each of so many parameters is in one bucket.
void check_buckets(const Buckets& buckets, size_t parameters);

/// averaged: indices into all trainable parameters, in ascending order.
Buckets for_reducer(const Buckets& buckets, const std::vector<size_t>& averaged);

/// The other way around. Those that are not averaged get buckets of their own, for runs that
/// average them: whoever gives buckets names every parameter.
Buckets for_users(Buckets buckets, const std::vector<size_t>& averaged, size_t parameters);

}  // namespace distributed_utils::detail
