#include "distributed_utils/comm_hooks.hpp"

#include <ATen/Functions.h>

#include <torch/csrc/distributed/c10d/comm.hpp>

namespace distributed_utils {

using c10::ivalue::Future;

c10::intrusive_ptr<Future> bf16_compress_hook(const Group& group, c10d::GradBucket& bucket) {
  const auto& gradients = bucket.getBuffer();
  auto compressed = at::empty(gradients.sizes(), gradients.options().dtype(at::kBFloat16));
  // Divided and rounded at once: bfloat16 could hold the sum, but would round twice.
  at::div_out(compressed, gradients, at::scalar_tensor(group->getSize(), gradients.dtype()));
  std::vector<at::Tensor> tensors{compressed};
  const auto sum = group->allreduce(tensors)->getFuture();
  return sum->then(
      [gradients, compressed](Future& done) {
        if (done.hasError()) std::rethrow_exception(done.exception_ptr());
        gradients.copy_(compressed);
        return c10::IValue(gradients);
      },
      c10::TensorType::get());
}

}  // namespace distributed_utils
