#pragma once
/// What a training step's memory holds: parameters, gradients, the optimizer's state, activations.
/// Looked at in a few early steps, then recorded once for monitoring.
#include <torch/optim/optimizer.h>

#include <c10/core/Device.h>

namespace tasks::memory {

void forward_begins(c10::Device device);
/// The forward pass has ended: what it keeps for the backward pass is allocated, nothing else is.
void forward_ended(c10::Device device);
void optimizer_begins(const torch::optim::Optimizer& optimizer);

/// Bytes that the allocator of the device has given out and not got back: on CPUs malloc's, where
/// it tells. 0 where nobody tells.
uint64_t allocated(c10::Device device);

/// Bytes of the tensors in the state of Adam, AdamW and SGD, and of what derives from them.
uint64_t state_bytes(const torch::optim::Optimizer& optimizer);

}  // namespace tasks::memory
