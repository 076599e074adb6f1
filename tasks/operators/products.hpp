#pragma once
/// Linear layers whose products are of 16 bits and whose gradients are not.
#include <ATen/core/Tensor.h>

#include "operators/narrow_copies.hpp"

namespace tasks::operators {

/// The type that sums over numbers of `type` are made in: fp32, or fp64.
at::ScalarType wide_type(at::ScalarType type);

/// a b, [m, k] and [k, n], of one type; of 16 bits: fp32, as the GPU adds it up, without a
/// rounding.
at::Tensor product(const at::Tensor& a, const at::Tensor& b);

/// input weight^T + bias in the copies' type, of the parameters' copies; gradients of weight and
/// bias are fp32, written so by the product itself. Under torch.autocast they are rounded, and cast
/// three times. input: [..., in], any floating type; weight: fp32 [out, in]; bias: fp32 [out].
/// Returns [..., out] of the copies' type.
at::Tensor narrow_linear(const at::Tensor& input, const at::Tensor& weight, const at::Tensor& bias,
                         NarrowCopies& copies);

}  // namespace tasks::operators
