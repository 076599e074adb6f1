#include "batch_norm.hpp"

#include <ATen/Context.h>
#include <ATen/Functions.h>

#ifdef USE_CUDA
#include <torch/csrc/autograd/custom_function.h>

#include <optional>

#include "gpu.hpp"
#endif

namespace tasks::operators {
namespace {

at::Tensor batch_norm_by_operators(const at::Tensor& input, const at::Tensor& added,
                                   const BatchNormParts& parts, bool relu) {
  if (parts.num_batches_tracked.defined()) parts.num_batches_tracked.add_(1);
  auto output = at::batch_norm(input, parts.weight, parts.bias, parts.running_mean,
                               parts.running_var, /*training=*/true, parts.momentum, parts.epsilon,
                               at::globalContext().userEnabledCuDNN());
  if (added.defined()) output = output + added;
  return relu ? output.relu() : output;
}

#ifdef USE_CUDA
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

bool is_fp32_or_none(const at::Tensor& tensor) {
  return !tensor.defined() || (tensor.scalar_type() == at::kFloat && tensor.is_contiguous());
}

bool batch_norm_has_kernel(const at::Tensor& input, const at::Tensor& added,
                           const BatchNormParts& parts) {
  if (!input.is_cuda() || input.dim() != 4 || !input.is_floating_point() ||
      !kernels::has_batch_norm(kernel_type(input.scalar_type(), "batch_norm: inputs"),
                               input.size(1))) {
    return false;
  }
  const bool adds =
      !added.defined() || (added.scalar_type() == input.scalar_type() &&
                           added.sizes() == input.sizes() && begins_at_channels(added));
  return adds && begins_at_channels(input) && input.numel() / input.size(1) > 1 &&
         parts.weight.defined() && parts.bias.defined() && is_fp32_or_none(parts.weight) &&
         is_fp32_or_none(parts.bias) && is_fp32_or_none(parts.running_mean) &&
         is_fp32_or_none(parts.running_var);
}

float* data_or_null(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.mutable_data_ptr<float>() : nullptr;
}

class BatchNorm : public torch::autograd::Function<BatchNorm> {
 public:
  static Variable forward(AutogradContext* context, const Variable& input,
                          const std::optional<Variable>& maybe_added, const Variable& weight,
                          const Variable& bias, const BatchNormParts& parts, bool relu) {
    const auto added = maybe_added.value_or(Variable());
    const auto moments = at::empty({2, input.size(1)}, weight.options());
    const auto type = kernel_type(input.scalar_type(), "batch_norm: inputs");
    const int64_t vector = 16 / input.element_size();
    const auto positive =
        relu ? at::empty({input.numel() / vector}, input.options().dtype(at::kByte)) : Variable();
    auto output = at::empty_like(input);
    auto arguments = arguments_of(type, input, weight, moments, positive);
    const auto partials = new_partials(arguments, weight);
    arguments.added = added.defined() ? added.const_data_ptr() : nullptr;
    arguments.bias = bias.const_data_ptr<float>();
    kernels::batch_norm(arguments, parts.epsilon,
                        {.mean = data_or_null(parts.running_mean),
                         .variance = data_or_null(parts.running_var),
                         .batches = parts.num_batches_tracked.defined()
                                        ? parts.num_batches_tracked.mutable_data_ptr<int64_t>()
                                        : nullptr,
                         .momentum = parts.momentum},
                        output.mutable_data_ptr(), stream_of(input));
    context->save_for_backward({input, weight, moments, positive});
    context->saved_data["adds"] = added.defined();
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto &input = saved[0], &weight = saved[1];
    const auto output = at_channels(gradients[0]);
    // Without ReLU the sum hands its gradient on as it is.
    const bool adds = context->saved_data["adds"].toBool(), masks = saved[3].defined();
    auto of_input = at::empty_like(input);
    auto of_added = adds && masks ? at::empty_like(input) : Variable();
    const auto parameters = at::empty({2, input.size(1)}, weight.options());
    const auto type = kernel_type(input.scalar_type(), "batch_norm: inputs");
    auto arguments = arguments_of(type, input, weight, saved[2], saved[3]);
    const auto partials = new_partials(arguments, weight);
    kernels::batch_norm_gradients(
        arguments,
        {.output = output.const_data_ptr(),
         .input = of_input.mutable_data_ptr(),
         .added = of_added.defined() ? of_added.mutable_data_ptr() : nullptr,
         .parameters = parameters.mutable_data_ptr<float>()},
        stream_of(input));
    if (adds && !masks) of_added = output;
    return {of_input, of_added, parameters[0], parameters[1], Variable(), Variable()};
  }

 private:
  static kernels::BatchNorm arguments_of(kernels::Type type, const Variable& input,
                                         const Variable& weight, const Variable& moments,
                                         const Variable& positive) {
    const int64_t channels = input.size(1);
    auto* const mean = moments.mutable_data_ptr<float>();
    return {.type = type,
            .rows = input.numel() / channels,
            .channels = channels,
            .input = input.const_data_ptr(),
            .added = nullptr,
            .weight = weight.const_data_ptr<float>(),
            .bias = nullptr,
            .mean = mean,
            .rstd = mean + channels,
            .positive = positive.defined() ? positive.mutable_data_ptr<uint8_t>() : nullptr,
            .partials = nullptr};
  }

  // The caller keeps it until the kernels are enqueued.
  static Variable new_partials(kernels::BatchNorm& arguments, const Variable& weight) {
    auto partials =
        at::empty({kernels::batch_norm_slabs(arguments.type, arguments.rows, arguments.channels), 2,
                   arguments.channels},
                  weight.options());
    arguments.partials = partials.mutable_data_ptr<float>();
    return partials;
  }
};
#endif

}  // namespace

at::Tensor batch_norm(const at::Tensor& input, const at::Tensor& added, const BatchNormParts& parts,
                      bool relu) {
#ifdef USE_CUDA
  if (batch_norm_has_kernel(input, added, parts)) {
    return BatchNorm::apply(input, added.defined() ? std::optional<Variable>(added) : std::nullopt,
                            parts.weight, parts.bias, parts, relu);
  }
#endif
  return batch_norm_by_operators(input, added, parts, relu);
}

}  // namespace tasks::operators
