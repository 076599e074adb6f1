#include "parameter_gradients.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#ifdef USE_CUDA
#include <c10/cuda/CUDAGuard.h>

#include "operators/exponential_loss.hpp"
#include "operators/gpu.hpp"
#endif

#include <optional>

#include "operators/products.hpp"

namespace tasks::operators {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

#ifdef USE_CUDA
// One for each GPU, for the whole program.
c10::cuda::CUDAStream second_stream(c10::DeviceIndex device) {
  static std::array<std::optional<c10::cuda::CUDAStream>, C10_COMPILE_TIME_MAX_GPUS> streams;
  auto& stream = streams.at(static_cast<size_t>(device));
  if (!stream) {
    stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, device);
    // Gradients come from another stream than their weights on purpose. Autograd waits for it, and
    // would warn every user of --fast.
    at::globalContext().setWarnOnAccumulateGradStreamMismatch(false);
  }
  return *stream;
}
#endif

// A tensor of these sizes in the memory of another: only its gradient will ever be looked at. In
// autograd's eyes it is not a view.
at::Tensor stand_in(const at::Tensor& memory, at::IntArrayRef sizes) {
  const at::AutoDispatchBelowADInplaceOrView raw;
  return memory.as_strided(sizes, std::vector<int64_t>(sizes.size(), 0));
}

// Scaling the narrower operand is cheaper than scaling the product, but for fp16 it may get lost.
at::Tensor weight_gradient(const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& scale,
                           double factor) {
  if (!scale.defined()) return product(gradient.t(), x);
  if (factor != 1) return product(gradient.t(), x).mul_(scale / factor);
  return product(gradient.t(), x * scale.to(x.scalar_type()));
}

// As a product with ones, which on GPUs is about twice as fast as at::sum.
at::Tensor column_sums(const at::Tensor& gradient) {
  const auto type = gradient.scalar_type();
  if (!gradient.is_cuda() || (type != at::kBFloat16 && type != at::kHalf)) {
    return at::sum(gradient, {0}, /*keepdim=*/false, wide_type(type));
  }
  return product(at::ones({1, gradient.size(0)}, gradient.options()), gradient)[0];
}

class Gradients : public torch::autograd::Function<Gradients> {
 public:
  static variable_list forward(AutogradContext* context, const Variable& weight,
                               const Variable& bias, const Variable& input, double factor) {
    context->save_for_backward({input});
    context->saved_data["factor"] = factor;
    context->set_materialize_grads(false);
    return {stand_in(input, {input.size(0), weight.size(0)}), stand_in(bias, bias.sizes()),
            stand_in(bias, {}), stand_in(bias, {input.size(0)})};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto input = context->get_saved_variables()[0];
    const auto& [product, sums, scale, factors] =
        std::tie(gradients[0], gradients[1], gradients[2], gradients[3]);
    if (!product.defined()) return variable_list(4);
#ifdef USE_CUDA
    // It may be let go of on the other stream before this one has read it.
    if (input.is_cuda()) input.record_stream(stream_of(input));
    if (factors.defined()) {
      const auto made = weighted_sums(product, factors, input);
      return {made.product, made.sums, Variable(), Variable()};
    }
#endif
    const auto weight =
        weight_gradient(product, input, scale, context->saved_data["factor"].toDouble());
    auto bias = sums.defined() ? sums : column_sums(product);
    if (scale.defined()) bias = bias * scale;
    return {weight, bias, Variable(), Variable()};
  }
};

}  // namespace

ParameterGradients parameter_gradients(const at::Tensor& input, const at::Tensor& weight,
                                       const at::Tensor& bias, double factor) {
#ifdef USE_CUDA
  std::optional<c10::cuda::CUDAStreamGuard> guard;
  if (input.is_cuda()) guard.emplace(second_stream(input.device().index()));
#endif
  const auto made = Gradients::apply(weight, bias, input, factor);
  return {made[0], made[1], made[2], made[3]};
}

}  // namespace tasks::operators
