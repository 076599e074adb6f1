#pragma once
/// InPlaceReducer: c10d's Reducer does the bookkeeping, and this class moves the gradients without
/// copies.
#include <optional>

#include "ddp/reducer.hpp"

namespace distributed_utils::detail {

/// ReducerKind::in_place. c10d::Reducer copies each gradient into its bucket and back, with a
/// kernel for each. This class leaves it the books (which bucket is ready, whose turn it is, when
/// all is back) and moves gradients itself: large ones are averaged where they are, the others of a
/// bucket are put together by one kernel and stay together, and NCCL divides while it adds.
///
/// It lives on protected members of c10d::Reducer. All that depends on them is in its source, so
/// that another version of LibTorch that changes them costs this class alone.
class InPlaceReducer : public Reducer {
 public:
  /// False where c10d has to look into gradients, or keeps them: these options need the plain one.
  static bool can(const DistributedDataParallelOptions& options);

  static std::shared_ptr<InPlaceReducer> make(TrainableParameters parameters,
                                              const Buckets& buckets, const Group& group,
                                              const DistributedDataParallelOptions& options);

  void prepare(const std::vector<at::Tensor>& outputs) override;
  void set_hook(CommHook hook) override;
  void settle_buckets() override;

 private:
  struct Ready {
    at::Tensor gradient;
    c10::Stream stream;  // that writes it
  };

  InPlaceReducer(TrainableParameters parameters, const Buckets& buckets, const Group& group,
                 const DistributedDataParallelOptions& options);

  void forgo_buckets();
  void listen();
  void hand_over(size_t index);
  std::vector<at::Tensor> take_ready(const std::vector<size_t>& indices);
  c10::intrusive_ptr<c10::ivalue::Future> send(c10d::GradBucket& bucket);

  bool listens_ = false;
  std::unordered_map<size_t, std::string> names_;
  CommHook hook_;                            // none: the average
  std::vector<std::optional<Ready>> ready_;  // by parameter: not yet on its way
};

}  // namespace distributed_utils::detail
