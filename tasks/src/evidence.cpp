#include "evidence.hpp"

#include <ATen/Functions.h>

#include "distributed_utils/recording.hpp"

namespace tasks {
namespace {

void append(Payload& payload, const void* data, size_t size) {
  const auto* bytes = static_cast<const std::byte*>(data);
  payload.insert(payload.end(), bytes, bytes + size);
}

template <class Number>
void append(Payload& payload, Number number) {
  append(payload, &number, sizeof number);
}

void append(Payload& payload, const at::Tensor& tensor) {
  const auto host = tensor.detach().to(at::kCPU).contiguous();
  append(payload, host.data_ptr(), host.nbytes());
}

}  // namespace

Payload fetch_payload(Split split, c10::ArrayRef<size_t> indices) {
  Payload payload;
  append(payload, static_cast<uint64_t>(split));
  for (const auto index : indices) append(payload, static_cast<uint64_t>(index));
  return payload;
}

Payload loss_payload(const Loss& loss, bool gradients_on) {
  Payload payload;
  append(payload, loss.sum.item<double>());
  append(payload, static_cast<double>(loss.count));
  append(payload, gradients_on ? 1.0 : 0.0);
  return payload;
}

Payload values_payload(std::span<const at::Tensor> parameters) {
  Payload payload;
  for (const auto& parameter : parameters) append(payload, parameter);
  return payload;
}

Payload gradients_payload(std::span<const at::Tensor> parameters) {
  Payload payload;
  for (const auto& parameter : parameters) {
    const auto& gradient = parameter.grad();
    append(payload, gradient.defined() ? gradient : at::zeros_like(parameter));
  }
  return payload;
}

Payload parameters_payload(std::span<const std::pair<std::string, at::Tensor>> parameters) {
  using distributed_utils::recording::TensorRecord;
  Payload payload;
  for (const auto& [name, tensor] : parameters) {
    append(payload, TensorRecord{.scalar_type = static_cast<int32_t>(tensor.scalar_type()),
                                 .name_size = static_cast<uint32_t>(name.size()),
                                 .elements = static_cast<uint64_t>(tensor.numel())});
    append(payload, name.data(), name.size());
  }
  return payload;
}

}  // namespace tasks
