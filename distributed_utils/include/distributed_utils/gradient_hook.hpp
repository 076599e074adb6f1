#pragma once
/// A hook that runs as soon as backward() has finished one parameter's gradient. It is Python's
/// Tensor.register_post_accumulate_grad_hook, which LibTorch lacks. Use it to build your own
/// DistributedDataParallel.
#include <ATen/core/Tensor.h>

#include <functional>

namespace distributed_utils {

/// Calls `hook` with the parameter each time backward() has added to its gradient. parameter.grad()
/// is then complete, but most other gradients may still be missing. Hooks of one parameter run in
/// the order of registration, on the thread that computes the gradient, and live as long as the
/// parameter. If a hook throws, backward() throws.
///
/// Throws Error for an empty hook, and for a tensor that is not a leaf or needs no gradient.
void register_post_accumulate_grad_hook(const at::Tensor& parameter,
                                        std::function<void(const at::Tensor& parameter)> hook);

}  // namespace distributed_utils
