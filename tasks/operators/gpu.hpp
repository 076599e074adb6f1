#pragma once
/// What handing tensors to kernels of ours takes; GPUs only.
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>

namespace tasks::operators {

/// The current stream of the tensor's GPU.
inline c10::cuda::CUDAStream stream_of(const at::Tensor& tensor) {
  return c10::cuda::getCurrentCUDAStream(tensor.device().index());
}

/// Contiguous from a multiple of 16 bytes on, so that kernels may read so much at once.
inline bool begins_at_vectors(const at::Tensor& tensor) {
  return tensor.is_contiguous() &&
         reinterpret_cast<std::uintptr_t>(tensor.const_data_ptr()) % 16 == 0;
}

}  // namespace tasks::operators
