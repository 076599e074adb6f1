#include "embedding.hpp"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#ifdef USE_CUDA
#include "gpu.hpp"
#include "kernels/kernels.hpp"
#endif

namespace tasks::operators {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

at::Tensor gradient_of_rows(const at::Tensor& gradient, const at::Tensor& indices, int64_t words) {
#ifdef USE_CUDA
  if (gradient.is_cuda() && gradient.scalar_type() == at::kFloat &&
      indices.numel() <= kernels::kMostEmbeddingIndices) {
    const auto rows = gradient.contiguous();
    const auto which = indices.contiguous();
    const int64_t width = rows.size(-1);
    auto result = at::zeros({words, width}, rows.options());
    kernels::embedding_gradient(rows.const_data_ptr<float>(), which.const_data_ptr<int64_t>(),
                                which.numel(), width, result.mutable_data_ptr<float>(),
                                stream_of(rows));
    return result;
  }
#endif
  return at::embedding_dense_backward(gradient, indices, words, /*padding_idx=*/-1,
                                      /*scale_grad_by_freq=*/false);
}

class Embedding : public torch::autograd::Function<Embedding> {
 public:
  static Variable forward(AutogradContext* context, const Variable& weight, const Variable& indices,
                          const c10::intrusive_ptr<EmbeddingRows>& rows) {
    context->save_for_backward({indices});
    context->saved_data["words"] = weight.size(0);
    if (rows) context->saved_data["rows"] = c10::IValue::make_capsule(rows);
    return at::embedding(weight, indices);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto indices = context->get_saved_variables()[0];
    const int64_t words = context->saved_data["words"].toInt();
    const auto rows = context->saved_data.find("rows");
    if (rows == context->saved_data.end()) {
      return {gradient_of_rows(gradients[0], indices, words), Variable(), Variable()};
    }
    const auto all = c10::static_intrusive_pointer_cast<EmbeddingRows>(rows->second.toCapsule());
    return {all->mean(gradients[0], indices, words), Variable(), Variable()};
  }
};

}  // namespace

at::Tensor embedding(const at::Tensor& weight, const at::Tensor& indices,
                     const c10::intrusive_ptr<EmbeddingRows>& rows) {
  return Embedding::apply(weight, indices, rows);
}

}  // namespace tasks::operators
