#pragma once
/// The payloads of what a task records; their layout is told in distributed_utils/recording.hpp.
#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tasks/task.hpp"

namespace tasks {

using Payload = std::vector<std::byte>;

Payload fetch_payload(Split split, c10::ArrayRef<size_t> indices);
Payload loss_payload(const Loss& loss, bool gradients_on);
Payload values_payload(std::span<const at::Tensor> parameters);
/// Gradients of the parameters in their order; zeros where a parameter has none.
Payload gradients_payload(std::span<const at::Tensor> parameters);
/// Names and tensors in the optimizer's order.
Payload parameters_payload(std::span<const std::pair<std::string, at::Tensor>> parameters);

}  // namespace tasks
