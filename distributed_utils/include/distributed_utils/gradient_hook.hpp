#pragma once
/// Python's Tensor.register_post_accumulate_grad_hook, which LibTorch's Tensor lacks.
#include <ATen/core/Tensor.h>

#include <functional>

namespace distributed_utils {

/// Calls `hook` with the parameter each time that backward() has added to its gradient: then
/// parameter.grad() is what this backward() made of it, and most others may still be missing. What
/// DistributedDataParallel of one's own starts its messages from. Hooks of one parameter run in the
/// order in which they were registered, on the thread that computes the gradient, and stay as long
/// as the parameter. What a hook throws comes out of backward().
///
/// Throws Error for an empty hook, and for a tensor that is no leaf or needs no gradient.
void register_post_accumulate_grad_hook(const at::Tensor& parameter,
                                        std::function<void(const at::Tensor& parameter)> hook);

}  // namespace distributed_utils
