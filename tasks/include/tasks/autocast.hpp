#pragma once
/// Autocast: mixed precision like Python's torch.autocast. Parameters stay fp32, and products use
/// bf16 or fp16.
#include <ATen/autocast_mode.h>

#include "tasks/options.hpp"

namespace tasks {

/// Whether products are of 16-bit copies, and so what a model returns.
inline bool are_narrow(Products products) {
  return products == Products::bf16 || products == Products::fp16;
}

/// Of these copies.
inline at::ScalarType narrow_type(Products products) {
  return products == Products::fp16 ? at::kHalf : at::kBFloat16;
}

/// While one lives with Products::bf16 or fp16, this thread's products on `device` are those of
/// copies of that type; sums that need it (losses, softmax, layer norms) stay fp32. With other
/// products it changes nothing. Which operators do which:
/// https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference
class Autocast {
 public:
  Autocast(at::DeviceType device, Products products);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool on_;
  bool was_enabled_ = false;
  at::ScalarType was_type_ = at::kBFloat16;
};

/// What several products take, converted once; each product would convert it for itself. As it is
/// where no Autocast lives that changes anything, or where it is not fp32.
at::Tensor operand(const at::Tensor& tensor);

}  // namespace tasks
