#pragma once
/// The gradients of a linear layer's parameters, made beside the rest of the backward pass.
#include <torch/csrc/autograd/variable.h>

namespace tasks::operators {

/// Stand for a product input weight^T + bias in the graph of gradients. Whoever makes the product
/// takes them as inputs and hands back, as their gradients, what the parameters' are made of.
struct ParameterGradients {
  at::Tensor product;  ///< [rows, outputs]: the product's own gradient
  at::Tensor sums;     ///< [outputs]: the sums of its columns; undefined: they are made here
  at::Tensor scale;    ///< []: what all this is to be multiplied by; undefined: nothing
  /// [rows]: instead of sums and scale, what each row of bf16 is to be multiplied by, on GPUs
  at::Tensor factors;
};

/// input: [rows, inputs], detached; weight: [outputs, inputs]; bias: [outputs]; both parameters.
/// The gradients' sums are fp32, or fp64 of fp64. factor: what product's gradient was multiplied
/// by.
///
/// Nothing but the optimizer waits for these gradients, so on GPUs they are made on a stream of
/// their own. Autograd makes streams wait for each other where they need to (nodes run on the
/// stream of their forward pass); where somebody else has met the parameters before, as
/// DistributedDataParallel has, gradients are there at once.
ParameterGradients parameter_gradients(const at::Tensor& input, const at::Tensor& weight,
                                       const at::Tensor& bias, double factor = 1);

}  // namespace tasks::operators
