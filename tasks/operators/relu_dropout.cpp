#include "relu_dropout.hpp"

#include <ATen/Functions.h>

#ifdef USE_CUDA
#include <torch/csrc/autograd/custom_function.h>

#include "gpu.hpp"
#include "random.hpp"
#endif

namespace tasks::operators {
namespace {

#ifdef USE_CUDA
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

bool relu_has_kernel(const at::Tensor& input) {
  return input.is_cuda() && begins_at_vectors(input) && input.numel() % 8 == 0 &&
         (input.scalar_type() == at::kFloat || input.scalar_type() == at::kBFloat16);
}

class ReluDropout : public torch::autograd::Function<ReluDropout> {
 public:
  static Variable forward(AutogradContext* context, const Variable& input, double dropout) {
    auto arguments = arguments_of(input, dropout);
    if (dropout > 0) arguments.random = draw(input.device());
    auto result = at::empty_like(input);
    kernels::relu_dropout(arguments, input.const_data_ptr(), result.mutable_data_ptr(),
                          stream_of(input));
    context->save_for_backward({result});
    context->saved_data["dropout"] = dropout;
    return result;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto result = context->get_saved_variables()[0];
    const auto gradient = gradients[0].contiguous();
    auto input = at::empty_like(gradient);
    kernels::relu_dropout_gradient(arguments_of(result, context->saved_data["dropout"].toDouble()),
                                   result.const_data_ptr(), gradient.const_data_ptr(),
                                   input.mutable_data_ptr(), stream_of(result));
    return {input, Variable()};
  }

 private:
  static kernels::ReluDropout arguments_of(const Variable& tensor, double dropout) {
    return {.type = kernel_type(tensor.scalar_type(), "relu_dropout: inputs"),
            .size = tensor.numel(),
            .dropout = dropout,
            .random = {}};
  }
};
#endif

}  // namespace

at::Tensor relu_dropout(const at::Tensor& input, double dropout) {
#ifdef USE_CUDA
  if (relu_has_kernel(input)) return ReluDropout::apply(input, dropout);
#endif
  return at::dropout(at::relu(input), dropout, /*train=*/dropout > 0);
}

}  // namespace tasks::operators
