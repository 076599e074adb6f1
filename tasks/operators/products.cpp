#include "products.hpp"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "operators/parameter_gradients.hpp"

namespace tasks::operators {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

// Of the input alone; what the parameters' gradients are made of goes to `parameters`.
class NarrowLinear : public torch::autograd::Function<NarrowLinear> {
 public:
  static Variable forward(AutogradContext* context, const Variable& input,
                          const Variable& parameters, const Variable& x, const Variable& w,
                          const Variable& b) {
    (void)parameters;
    context->save_for_backward({w});
    context->saved_data["sizes"] = input.sizes();
    return at::linear(x, w, b);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto w = context->get_saved_variables()[0];
    const auto gradient = gradients[0].reshape({-1, w.size(0)});
    const auto input = context->needs_input_grad(0)
                           ? at::mm(gradient, w).view(context->saved_data["sizes"].toIntVector())
                           : Variable();
    return {input, gradient, Variable(), Variable(), Variable()};
  }
};

}  // namespace

at::ScalarType wide_type(at::ScalarType type) {
  return type == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != at::kBFloat16 && a.scalar_type() != at::kHalf) return at::mm(a, b);
  if (a.is_cuda()) return at::mm(a, b, at::kFloat);
  return at::mm(a.to(at::kFloat), b.to(at::kFloat));
}

at::Tensor narrow_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         NarrowCopies& copies) {
  const auto x = input.detach().to(copies.type());
  const auto parameters = parameter_gradients(x.reshape({-1, x.size(-1)}), weight, bias);
  return NarrowLinear::apply(input, parameters.product, x, copies.of(weight), copies.of(bias));
}

}  // namespace tasks::operators
