#include "attention.hpp"

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

bool attention_has_kernel(const at::Tensor& projected, int64_t heads) {
  const auto type = projected.scalar_type();
  return projected.is_cuda() && begins_at_vectors(projected) &&
         (type == at::kFloat || type == at::kBFloat16) &&
         kernels::has_causal_attention(projected.size(1), projected.size(2) / 3 / heads);
}

class CausalAttention : public torch::autograd::Function<CausalAttention> {
 public:
  static Variable forward(AutogradContext* context, const Variable& projected, int64_t heads,
                          double dropout) {
    const auto random = dropout > 0 ? draw(projected.device()) : kernels::Random{};
    context->save_for_backward({projected});
    context->saved_data["heads"] = heads;
    context->saved_data["dropout"] = dropout;
    keep(*context, random);
    auto result = at::empty({projected.size(0), projected.size(1), projected.size(2) / 3},
                            projected.options());
    kernels::causal_attention(arguments_of(projected, heads, dropout, random),
                              result.mutable_data_ptr(), stream_of(projected));
    return result;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto projected = context->get_saved_variables()[0];
    const auto& given = gradients[0];
    const auto gradient =
        begins_at_vectors(given) ? given : given.clone(at::MemoryFormat::Contiguous);
    auto result = at::empty_like(projected);
    kernels::causal_attention_gradient(
        arguments_of(projected, context->saved_data["heads"].toInt(),
                     context->saved_data["dropout"].toDouble(), kept(*context)),
        gradient.const_data_ptr(), result.mutable_data_ptr(), stream_of(projected));
    return {result, Variable(), Variable()};
  }

 private:
  static kernels::CausalAttention arguments_of(const Variable& projected, int64_t heads,
                                               double dropout, const kernels::Random& random) {
    return {.type = kernel_type(projected.scalar_type(), "causal_attention: projections"),
            .projected = projected.const_data_ptr(),
            .batch = projected.size(0),
            .sequence = projected.size(1),
            .heads = heads,
            .size = projected.size(2) / 3 / heads,
            .dropout = dropout,
            .random = random};
  }
};
#endif

}  // namespace

at::Tensor causal_attention(const at::Tensor& projected, int64_t heads, double dropout) {
  const auto batch = projected.size(0), sequence = projected.size(1);
  const auto width = projected.size(2) / 3;
  // Three of [batch, heads, sequence, width / heads], their gradients put together at once.
  const auto parts =
      projected.view({batch, sequence, 3, heads, width / heads}).permute({2, 0, 3, 1, 4}).unbind();
  return at::scaled_dot_product_attention(parts[0], parts[1], parts[2], /*attn_mask=*/{}, dropout,
                                          /*is_causal=*/true)
      .transpose(1, 2)
      .reshape({batch, sequence, width});
}

at::Tensor fused_causal_attention(const at::Tensor& projected, int64_t heads, double dropout) {
#ifdef USE_CUDA
  if (attention_has_kernel(projected, heads)) {
    return CausalAttention::apply(projected, heads, dropout);
  }
#endif
  return causal_attention(projected, heads, dropout);
}

}  // namespace tasks::operators
