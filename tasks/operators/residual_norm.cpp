#include "residual_norm.hpp"

#include <ATen/Functions.h>

#ifdef USE_CUDA
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>

#include "kernels/kernels.hpp"
#endif

namespace tasks::operators {
namespace {

at::Tensor norm_by_operators(const at::Tensor& residual, const at::Tensor& added,
                             const at::Tensor& weight, const at::Tensor& bias, double dropout,
                             double epsilon) {
  const auto sum = residual + at::dropout(added, dropout, /*train=*/dropout > 0);
  return at::layer_norm(sum, {sum.size(-1)}, weight, bias, epsilon);
}

#ifdef USE_CUDA
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

bool norm_has_kernel(const at::Tensor& residual, const at::Tensor& added,
                     const at::Tensor& weight) {
  const auto width = residual.size(-1);
  return residual.is_cuda() && residual.scalar_type() == at::kFloat &&
         weight.scalar_type() == at::kFloat && residual.sizes() == added.sizes() &&
         (added.scalar_type() == at::kFloat || added.scalar_type() == at::kBFloat16) &&
         width % 4 == 0 && width <= kernels::kMostNormWidth;
}

// Four numbers of each subsequence: one call of Philox for each four elements.
kernels::Random draw(double dropout, at::Device device) {
  if (dropout == 0) return {};
  auto* generator = at::get_generator_or_default<at::CUDAGeneratorImpl>(
      std::nullopt, at::cuda::detail::getDefaultCUDAGenerator(device.index()));
  const std::lock_guard lock(generator->mutex_);
  const auto state = generator->philox_cuda_state(4);
  if (!state.captured_) return {.seed = state.seed_.val, .offset = state.offset_.val};
  return {.seed = 0,
          .offset = state.offset_intragraph_,
          .seed_at = state.seed_.ptr,
          .offset_at = state.offset_.ptr};
}

class ResidualNorm : public torch::autograd::Function<ResidualNorm> {
 public:
  static Variable forward(AutogradContext* context, const Variable& residual, const Variable& added,
                          const Variable& weight, const Variable& bias, double dropout,
                          double epsilon) {
    auto output = at::empty_like(residual);
    const auto sum = at::empty_like(residual);
    const auto moments = at::empty({2, residual.numel() / residual.size(-1)}, residual.options());
    const auto random = draw(dropout, residual.device());
    context->save_for_backward({sum, moments, weight, added});
    context->saved_data["dropout"] = dropout;
    const auto keep = [&](const char* name, auto value) {
      context->saved_data[name] = static_cast<int64_t>(value);
    };
    keep("seed", random.seed);
    keep("offset", random.offset);
    keep("seed_at", reinterpret_cast<std::intptr_t>(random.seed_at));
    keep("offset_at", reinterpret_cast<std::intptr_t>(random.offset_at));
    auto arguments = arguments_of(sum, moments, weight, added, dropout, random);
    arguments.residual = residual.const_data_ptr<float>();
    arguments.bias = bias.const_data_ptr<float>();
    arguments.epsilon = epsilon;
    kernels::residual_norm(arguments, output.mutable_data_ptr<float>(), stream_of(residual));
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto kept = [&](const char* name) { return context->saved_data[name].toInt(); };
    const kernels::Random random{.seed = static_cast<uint64_t>(kept("seed")),
                                 .offset = static_cast<uint64_t>(kept("offset")),
                                 .seed_at = reinterpret_cast<const int64_t*>(kept("seed_at")),
                                 .offset_at = reinterpret_cast<const int64_t*>(kept("offset_at"))};
    const auto arguments = arguments_of(saved[0], saved[1], saved[2], saved[3],
                                        context->saved_data["dropout"].toDouble(), random);
    const auto output = gradients[0].contiguous();
    auto residual = at::empty_like(output);
    auto added = at::empty_like(saved[3]);
    const auto parameters =
        at::empty({kernels::norm_blocks(arguments.rows), 2, arguments.width}, output.options());
    if (arguments.rows == 0) parameters.zero_();
    kernels::residual_norm_gradients(arguments,
                                     {.output = output.const_data_ptr<float>(),
                                      .residual = residual.mutable_data_ptr<float>(),
                                      .added = added.mutable_data_ptr(),
                                      .parameters = parameters.mutable_data_ptr<float>()},
                                     stream_of(output));
    const auto sums = parameters.sum(0);
    return {residual, added, sums[0], sums[1], Variable(), Variable()};
  }

 private:
  static kernels::Stream stream_of(const Variable& tensor) {
    return c10::cuda::getCurrentCUDAStream(tensor.device().index());
  }

  static kernels::ResidualNorm arguments_of(const Variable& sum, const Variable& moments,
                                            const Variable& weight, const Variable& added,
                                            double dropout, const kernels::Random& random) {
    return {
        .type = added.scalar_type() == at::kBFloat16 ? kernels::Type::bf16 : kernels::Type::fp32,
        .rows = moments.size(1),
        .width = sum.size(-1),
        .residual = nullptr,
        .added = added.const_data_ptr(),
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

at::Tensor residual_norm(const at::Tensor& residual, const at::Tensor& added,
                         const at::Tensor& weight, const at::Tensor& bias, double dropout,
                         double epsilon) {
#ifdef USE_CUDA
  if (norm_has_kernel(residual, added, weight)) {
    return ResidualNorm::apply(residual.contiguous(), added.contiguous(), weight, bias, dropout,
                               epsilon);
  }
#endif
  return norm_by_operators(residual, added, weight, bias, dropout, epsilon);
}

}  // namespace tasks::operators
