#pragma once
/// What handing tensors to kernels of ours takes; GPUs only.
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

#include "kernels/kernels.hpp"

namespace tasks::operators {

/// Throws c10::Error, which says what is of a type that kernels do not know.
inline kernels::Type kernel_type(at::ScalarType type, const char* what) {
  if (type == at::kDouble) return kernels::Type::fp64;
  if (type == at::kFloat) return kernels::Type::fp32;
  if (type == at::kHalf) return kernels::Type::fp16;
  TORCH_CHECK(type == at::kBFloat16, what, " are ", type,
              ", none of Double, Float, BFloat16 and Half");
  return kernels::Type::bf16;
}

/// The current stream of the tensor's GPU.
inline c10::cuda::CUDAStream stream_of(const at::Tensor& tensor) {
  return c10::cuda::getCurrentCUDAStream(tensor.device().index());
}

/// Contiguous from a multiple of 16 bytes on, so that kernels may read so much at once.
inline bool begins_at_vectors(const at::Tensor& tensor) {
  return tensor.is_contiguous() &&
         reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 16 == 0;
}

/// Channels-last from such a place on.
inline bool begins_at_channels(const at::Tensor& tensor) {
  return tensor.is_contiguous(at::MemoryFormat::ChannelsLast) &&
         reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 16 == 0;
}

/// The tensor if it lies so, or a copy that does.
inline at::Tensor at_channels(const at::Tensor& tensor) {
  return begins_at_channels(tensor) ? tensor : tensor.clone(at::MemoryFormat::ChannelsLast);
}

}  // namespace tasks::operators
