#include "pools.hpp"

#include <ATen/Functions.h>

#ifdef USE_CUDA
#include <torch/csrc/autograd/custom_function.h>

#include "gpu.hpp"
#endif

namespace tasks::operators {

#ifdef USE_CUDA
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

kernels::Pictures pictures_of(const at::Tensor& like, at::IntArrayRef sizes) {
  return {kernel_type(like.scalar_type(), "pools: pictures"), sizes[0], sizes[2], sizes[3],
          sizes[1]};
}

bool pools_have_kernels(const at::Tensor& input) {
  return input.is_cuda() && input.dim() == 4 && input.is_floating_point() &&
         kernels::has_pools(pictures_of(input, input.sizes())) && begins_at_channels(input);
}

at::Tensor new_pictures(const at::Tensor& like, at::IntArrayRef sizes, int64_t height,
                        int64_t width) {
  return at::empty({sizes[0], sizes[1], height, width}, like.options(),
                   at::MemoryFormat::ChannelsLast);
}

class AveragePool : public torch::autograd::Function<AveragePool> {
 public:
  static Variable forward(AutogradContext* context, const Variable& input) {
    const auto sizes = input.sizes();
    auto output = new_pictures(input, sizes, (sizes[2] + 1) / 2, (sizes[3] + 1) / 2);
    kernels::average_pool(pictures_of(input, sizes), input.const_data_ptr(),
                          output.mutable_data_ptr(), stream_of(input));
    context->saved_data["sizes"] = sizes.vec();
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto output = at_channels(gradients[0]);
    const auto sizes = context->saved_data["sizes"].toIntVector();
    auto input = new_pictures(output, sizes, sizes[2], sizes[3]);
    kernels::average_pool_gradient(pictures_of(output, sizes), output.const_data_ptr(),
                                   input.mutable_data_ptr(), stream_of(output));
    return {input};
  }
};

class MaxPool : public torch::autograd::Function<MaxPool> {
 public:
  static Variable forward(AutogradContext* context, const Variable& input) {
    const auto sizes = input.sizes();
    auto output = new_pictures(input, sizes, (sizes[2] - 1) / 2 + 1, (sizes[3] - 1) / 2 + 1);
    auto winners = at::empty({output.numel()}, input.options().dtype(at::kByte));
    kernels::max_pool(pictures_of(input, sizes), input.const_data_ptr(), output.mutable_data_ptr(),
                      winners.mutable_data_ptr<uint8_t>(), stream_of(input));
    context->save_for_backward({winners});
    context->saved_data["sizes"] = sizes.vec();
    return output;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto output = at_channels(gradients[0]);
    const auto winners = context->get_saved_variables()[0];
    const auto sizes = context->saved_data["sizes"].toIntVector();
    auto input = new_pictures(output, sizes, sizes[2], sizes[3]);
    kernels::max_pool_gradient(pictures_of(output, sizes), output.const_data_ptr(),
                               winners.const_data_ptr<uint8_t>(), input.mutable_data_ptr(),
                               stream_of(output));
    return {input};
  }
};

}  // namespace
#endif

at::Tensor average_pool(const at::Tensor& input) {
#ifdef USE_CUDA
  if (pools_have_kernels(input)) return AveragePool::apply(input);
#endif
  return at::avg_pool2d(input, 2, 2, 0, /*ceil_mode=*/true);
}

at::Tensor max_pool(const at::Tensor& input) {
#ifdef USE_CUDA
  if (pools_have_kernels(input)) return MaxPool::apply(input);
#endif
  return at::max_pool2d(input, 3, 2, 1);
}

}  // namespace tasks::operators
