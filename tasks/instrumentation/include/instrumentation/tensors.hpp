#pragma once
/// Tensors as a log holds them (see TensorRecord): in their own type, copied to the host.
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace instrumentation {

using Payload = std::vector<std::byte>;

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
  bool buffer = false;  ///< or a parameter
};

/// Names, types and sizes; and the values, if they are wanted.
Payload describe_tensors(std::span<const NamedTensor> tensors, bool with_values);

/// The values alone, one tensor after the other.
Payload values_of(std::span<const at::Tensor> tensors);

/// The gradients of these parameters, in each one's type; zeros where there is none.
Payload gradients_of(std::span<const at::Tensor> parameters);

}  // namespace instrumentation
