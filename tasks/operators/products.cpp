#include "products.hpp"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

namespace tasks::operators {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

class NarrowLinear : public torch::autograd::Function<NarrowLinear> {
 public:
  static Variable forward(AutogradContext* context, const Variable& input, const Variable& weight,
                          const Variable& bias, NarrowCopies* copies) {
    const auto x = input.to(copies->type());
    const auto w = copies->of(weight);
    context->save_for_backward({x, w});
    return at::linear(x, w, copies->of(bias));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto& x = saved[0];
    const auto& w = saved[1];
    const auto gradient = gradients[0].reshape({-1, w.size(0)});
    const auto input =
        context->needs_input_grad(0) ? at::mm(gradient, w).view(x.sizes()) : Variable();
    const auto weight = product(gradient.t(), x.reshape({-1, w.size(1)}));
    const auto bias = at::sum(gradient, {0}, /*keepdim=*/false, at::kFloat);
    return {input, weight, bias, Variable()};
  }
};

}  // namespace

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != at::kBFloat16 && a.scalar_type() != at::kHalf) return at::mm(a, b);
  if (a.is_cuda()) return at::mm(a, b, at::kFloat);
  return at::mm(a.to(at::kFloat), b.to(at::kFloat));
}

at::Tensor narrow_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         NarrowCopies& copies) {
  return NarrowLinear::apply(input, weight, bias, &copies);
}

}  // namespace tasks::operators
