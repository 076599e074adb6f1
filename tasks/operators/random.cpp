#include "random.hpp"

#include <ATen/cuda/CUDAGeneratorImpl.h>

#include <mutex>

namespace tasks::operators {

kernels::Random draw(at::Device device) {
  auto* generator = at::get_generator_or_default<at::CUDAGeneratorImpl>(
      std::nullopt, at::cuda::detail::getDefaultCUDAGenerator(device.index()));
  const std::lock_guard lock(generator->mutex_);
  const auto state = generator->philox_cuda_state(4);
  if (!state.captured_) return {.seed = state.seed_.val, .offset = state.offset_.val};
  return {.seed = 0,
          .offset = state.offset_intragraph_,
          .seed_at = state.seed_.ptr,
          .offset_at = state.offset_.ptr};
}

}  // namespace tasks::operators
