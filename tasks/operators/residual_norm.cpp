#include "residual_norm.hpp"

#include <ATen/Functions.h>

#ifdef USE_CUDA
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "gpu.hpp"
#include "random.hpp"
#endif

namespace tasks::operators {
namespace {

Normed norm_by_operators(const at::Tensor& residual, const at::Tensor& added,
                         const at::Tensor& weight, const at::Tensor& bias, double dropout,
                         double epsilon) {
  const auto sum = residual + at::dropout(added, dropout, /*train=*/dropout > 0);
  const auto output = at::layer_norm(sum, {sum.size(-1)}, weight, bias, epsilon);
  return {output, output.to(added.scalar_type())};
}

#ifdef USE_CUDA
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

bool norm_has_kernel(const at::Tensor& residual, const at::Tensor& added,
                     const at::Tensor& weight) {
  const auto width = residual.size(-1);
  return residual.is_cuda() && residual.scalar_type() == at::kFloat &&
         weight.scalar_type() == at::kFloat &&
         (!added.defined() ||
          (residual.sizes() == added.sizes() &&
           (added.scalar_type() == at::kFloat || added.scalar_type() == at::kBFloat16))) &&
         width % 4 == 0 && width <= kernels::kMostNormWidth;
}

class ResidualNorm : public torch::autograd::Function<ResidualNorm> {
 public:
  static variable_list forward(AutogradContext* context, const Variable& residual,
                               const std::optional<Variable>& maybe_added, const Variable& weight,
                               const Variable& bias, double dropout, double epsilon,
                               bool gives_sum) {
    context->set_materialize_grads(false);
    const auto added = maybe_added.value_or(Variable());
    const bool is_narrow = type_of(added) == at::kBFloat16;
    const auto wide = is_narrow && gives_sum ? Variable() : at::empty_like(residual);
    const auto narrow = is_narrow ? at::empty_like(added) : Variable();
    const auto sum = added.defined() ? at::empty_like(residual) : residual;
    const auto moments = at::empty({2, residual.numel() / residual.size(-1)}, residual.options());
    const auto random = dropout > 0 ? draw(residual.device()) : kernels::Random{};
    context->save_for_backward({sum, moments, weight, added});
    context->saved_data["dropout"] = dropout;
    keep(*context, random);
    auto arguments = arguments_of(sum, moments, weight, added, dropout, random);
    arguments.residual = residual.const_data_ptr<float>();
    arguments.bias = bias.const_data_ptr<float>();
    arguments.epsilon = epsilon;
    kernels::residual_norm(arguments, wide.defined() ? wide.mutable_data_ptr<float>() : nullptr,
                           is_narrow ? narrow.mutable_data_ptr() : nullptr, stream_of(residual));
    context->saved_data["gives_sum"] = gives_sum;
    if (gives_sum) return {sum, is_narrow ? narrow : wide};
    return is_narrow ? variable_list{wide, narrow} : variable_list{wide};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto arguments = arguments_of(saved[0], saved[1], saved[2], saved[3],
                                        context->saved_data["dropout"].toDouble(), kept(*context));
    const auto [of_sum, wide, narrow] =
        sorted(gradients, context->saved_data["gives_sum"].toBool());
    auto residual = at::empty_like(saved[0]);
    auto added = saved[3].defined() ? at::empty_like(saved[3]) : Variable();
    const auto blocks =
        at::empty({kernels::norm_blocks(arguments.rows), 2, arguments.width}, residual.options());
    const auto parameters = at::empty({2, arguments.width}, residual.options());
    if (arguments.rows == 0) parameters.zero_();
    kernels::residual_norm_gradients(
        arguments,
        {.sum = of_sum.defined() ? of_sum.const_data_ptr<float>() : nullptr,
         .output = wide.defined() ? wide.const_data_ptr<float>() : nullptr,
         .narrow = narrow.defined() ? narrow.const_data_ptr() : nullptr,
         .residual = residual.mutable_data_ptr<float>(),
         .added = added.defined() ? added.mutable_data_ptr() : nullptr,
         .blocks = blocks.mutable_data_ptr<float>(),
         .parameters = parameters.mutable_data_ptr<float>()},
        stream_of(residual));
    return {residual, added, parameters[0], parameters[1], Variable(), Variable(), Variable()};
  }

 private:
  struct Gradients {
    Variable sum, wide, narrow;
  };

  // By what they are of; those that nobody asked for are undefined.
  static Gradients sorted(const variable_list& all, bool gives_sum) {
    const auto at = [&](size_t i) {
      return i < all.size() && all[i].defined() ? all[i].contiguous() : Variable();
    };
    if (!gives_sum) return {Variable(), at(0), at(1)};
    const auto normed = at(1);
    const bool is_narrow = normed.defined() && normed.scalar_type() == at::kBFloat16;
    return {at(0), is_narrow ? Variable() : normed, is_narrow ? normed : Variable()};
  }

  static at::ScalarType type_of(const Variable& added) {
    return added.defined() ? added.scalar_type() : at::kFloat;
  }

  static kernels::ResidualNorm arguments_of(const Variable& sum, const Variable& moments,
                                            const Variable& weight, const Variable& added,
                                            double dropout, const kernels::Random& random) {
    return {.type = kernel_type(type_of(added), "residual_norm: summands"),
            .rows = moments.size(1),
            .width = sum.size(-1),
            .residual = nullptr,
            .added = added.defined() ? added.const_data_ptr() : nullptr,
            .weight = weight.const_data_ptr<float>(),
            .bias = nullptr,
            .epsilon = 0,
            .dropout = dropout,
            .random = random,
            .sum = sum.mutable_data_ptr<float>(),
            .mean = moments.mutable_data_ptr<float>(),
            .rstd = moments.mutable_data_ptr<float>() + moments.size(1)};
  }
};
#endif

}  // namespace

at::Tensor layer_norm(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                      double epsilon) {
#ifdef USE_CUDA
  if (norm_has_kernel(input, {}, weight)) {
    return ResidualNorm::apply(input.contiguous(), std::optional<Variable>(), weight, bias, 0.0,
                               epsilon, false)
        .front();
  }
#endif
  return at::layer_norm(input, {input.size(-1)}, weight, bias, epsilon);
}

Normed residual_norm(const at::Tensor& residual, const at::Tensor& added, const at::Tensor& weight,
                     const at::Tensor& bias, double dropout, double epsilon) {
#ifdef USE_CUDA
  if (norm_has_kernel(residual, added, weight)) {
    const auto outputs =
        ResidualNorm::apply(residual.contiguous(), std::optional<Variable>(added.contiguous()),
                            weight, bias, dropout, epsilon, false);
    return {outputs.front(), outputs.back()};
  }
#endif
  return norm_by_operators(residual, added, weight, bias, dropout, epsilon);
}

Summed sum_norm(const at::Tensor& residual, const at::Tensor& added, const at::Tensor& weight,
                const at::Tensor& bias, double epsilon) {
#ifdef USE_CUDA
  if (norm_has_kernel(residual, added, weight)) {
    const auto outputs =
        ResidualNorm::apply(residual.contiguous(), std::optional<Variable>(added.contiguous()),
                            weight, bias, 0.0, epsilon, true);
    return {outputs[0], outputs[1]};
  }
#endif
  const auto sum = residual + added;
  const auto normed = at::layer_norm(sum, {sum.size(-1)}, weight, bias, epsilon);
  return {sum, normed.to(added.scalar_type())};
}

}  // namespace tasks::operators
