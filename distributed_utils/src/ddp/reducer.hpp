#pragma once
/// c10d's Reducer as DistributedDataParallel uses it.
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "ddp/ddp_buckets.hpp"
#include "distributed_utils/comm_hooks.hpp"
#include "distributed_utils/ddp.hpp"

namespace distributed_utils::detail {

struct TrainableParameters {
  std::vector<at::Tensor> tensors;
  std::unordered_map<size_t, std::string> names;
};

/// ReducerKind::plain: c10d's own, except that given buckets stay as they are.
class Reducer : public c10d::Reducer {
 public:
  /// buckets: those of the options, or what to begin with. as_views: gradients are parts of c10d's
  /// buckets, so that it copies nothing.
  Reducer(TrainableParameters parameters, const Buckets& buckets, const Group& group,
          const DistributedDataParallelOptions& options, bool as_views);
  virtual ~Reducer() noexcept(false) = default;

  /// After each forward() whose backward() is to average. outputs: what it returned, for those who
  /// look for unused parameters.
  virtual void prepare(const std::vector<at::Tensor>& outputs);

  /// What happens to each bucket instead of the average. Once, before the first backward().
  virtual void set_hook(CommHook hook);

  /// Rebuilds the buckets as gradients became ready in rank 0's first backward(), if that is over
  /// and they were not given. Every rank calls it, between two steps.
  virtual void settle_buckets();
};

}  // namespace distributed_utils::detail
