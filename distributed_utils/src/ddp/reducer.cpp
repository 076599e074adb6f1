#include "ddp/reducer.hpp"

#include <utility>

namespace distributed_utils::detail {
namespace {

/// A hook as c10d takes it.
class Hook : public c10d::CppCommHookInterface<Group> {
 public:
  Hook(Group group, CommHook hook)
      : CppCommHookInterface(std::move(group)), hook_(std::move(hook)) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    return hook_(state_, bucket);
  }

 private:
  CommHook hook_;
};

}  // namespace

Reducer::Reducer(TrainableParameters parameters, const Buckets& buckets, const Group& group,
                 const DistributedDataParallelOptions& options, bool as_views)
    : c10d::Reducer(std::move(parameters.tensors), buckets, group,
                    /*expect_sparse_gradients=*/{}, options.bucket_cap_bytes,
                    options.find_unused_parameters, as_views, std::move(parameters.names),
                    options.first_bucket_bytes,
                    /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
                    /*bucket_bytes_cap_list=*/{}) {
  has_rebuilt_bucket_ = !options.bucket_indices.empty();
}

void Reducer::prepare(const std::vector<at::Tensor>& outputs) { prepare_for_backward(outputs); }

void Reducer::set_hook(CommHook hook) {
  register_comm_hook(std::make_unique<Hook>(process_group_, std::move(hook)));
}

void Reducer::settle_buckets() {
  if (should_rebuild_buckets()) rebuild_buckets();
}

}  // namespace distributed_utils::detail
