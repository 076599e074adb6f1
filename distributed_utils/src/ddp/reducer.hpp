#pragma once
/// c10d's Reducer without its copies.
#include <optional>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "ddp/ddp_buckets.hpp"
#include "distributed_utils/comm_hooks.hpp"
#include "distributed_utils/ddp.hpp"

namespace distributed_utils::detail {

struct TrainableParameters {
  std::vector<at::Tensor> tensors;
  std::unordered_map<size_t, std::string> names;
};

/// c10d::Reducer copies each gradient into its bucket and back, with a kernel for each. Unless it
/// has to look for unused parameters, or gradients are to live in its buckets, this one leaves it
/// only the books (which bucket is ready, whose turn it is, when all is back) and moves gradients
/// itself: large ones are averaged where they are, the others of a bucket are put together by one
/// kernel and stay together, and NCCL divides while it adds.
class Reducer : public c10d::Reducer {
 public:
  /// buckets: those of the options, or what to begin with.
  static std::shared_ptr<Reducer> make(TrainableParameters parameters, const Buckets& buckets,
                                       const Group& group,
                                       const DistributedDataParallelOptions& options);

  /// After each forward() whose backward() is to average. outputs: what it returned, for those who
  /// look for unused parameters.
  void prepare(const std::vector<at::Tensor>& outputs);

  /// What happens to each bucket instead of the average. Once, before the first backward().
  void set_hook(CommHook hook);

  /// Rebuilds the buckets as gradients became ready in rank 0's first backward(), if that is over
  /// and they were not given. Every rank calls it, between two steps.
  void settle_buckets();

 private:
  struct Ready {
    at::Tensor gradient;
    c10::Stream stream;  // that writes it
  };

  Reducer(TrainableParameters parameters, const Buckets& buckets, const Group& group,
          const DistributedDataParallelOptions& options);

  void forgo_buckets();
  void listen();
  void hand_over(size_t index);
  std::vector<at::Tensor> take_ready(const std::vector<size_t>& indices);
  c10::intrusive_ptr<c10::ivalue::Future> send(c10d::GradBucket& bucket);

  bool moves_gradients_, listens_ = false;
  std::unordered_map<size_t, std::string> names_;
  CommHook hook_;                            // none: the average
  std::vector<std::optional<Ready>> ready_;  // by parameter: not yet on its way
};

}  // namespace distributed_utils::detail
