#pragma once
/// Mixed precision as Python's torch.autocast: parameters stay fp32, what multiplies them is bf16.
#include <ATen/autocast_mode.h>

namespace tasks {

/// While one lives with `on`, this thread's products on `device` are those of bf16 copies; sums
/// that need it (losses, softmax, layer norms) stay fp32. Which operators do which:
/// https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference
class Autocast {
 public:
  Autocast(at::DeviceType device, bool on);
  ~Autocast();
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  at::DeviceType device_;
  bool on_;
  bool was_enabled_ = false;
  at::ScalarType was_type_ = at::kBFloat16;
};

}  // namespace tasks
