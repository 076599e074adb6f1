#include "instrumentation/tensors.hpp"

#include <ATen/Functions.h>

#include "instrumentation/log.hpp"

namespace instrumentation {
namespace {

void append(Payload& payload, const void* data, size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  payload.insert(payload.end(), bytes, bytes + size);
}

void append_values(Payload& payload, const at::Tensor& tensor) {
  const auto host = tensor.detach().to(at::kCPU).contiguous();
  append(payload, host.const_data_ptr(), host.nbytes());
}

}  // namespace

Payload describe_tensors(std::span<const NamedTensor> tensors, bool with_values) {
  Payload payload;
  for (const auto& [name, tensor, buffer] : tensors) {
    const TensorRecord record{.scalar_type = static_cast<int32_t>(tensor.scalar_type()),
                              .buffer = buffer ? 1U : 0U,
                              .name_size = static_cast<uint32_t>(name.size()),
                              .dimensions = static_cast<uint32_t>(tensor.dim()),
                              .elements = static_cast<uint64_t>(tensor.numel()),
                              .bytes = with_values ? tensor.nbytes() : 0};
    append(payload, &record, sizeof record);
    append(payload, name.data(), name.size());
    append(payload, tensor.sizes().data(), tensor.sizes().size() * sizeof(int64_t));
    if (with_values) append_values(payload, tensor);
    payload.resize(padded(payload.size()));
  }
  return payload;
}

Payload values_of(std::span<const at::Tensor> tensors) {
  Payload payload;
  for (const auto& tensor : tensors) append_values(payload, tensor);
  return payload;
}

Payload gradients_of(std::span<const at::Tensor> parameters) {
  Payload payload;
  for (const auto& parameter : parameters) {
    const auto& gradient = parameter.grad();
    append_values(payload, gradient.defined() ? gradient.to_dense().to(parameter.scalar_type())
                                              : at::zeros_like(parameter));
  }
  return payload;
}

}  // namespace instrumentation
