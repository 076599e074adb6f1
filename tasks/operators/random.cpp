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

void keep(torch::autograd::AutogradContext& context, const kernels::Random& random) {
  const auto keep_one = [&](const char* name, auto value) {
    context.saved_data[name] = static_cast<int64_t>(value);
  };
  keep_one("seed", random.seed);
  keep_one("offset", random.offset);
  keep_one("seed_at", reinterpret_cast<std::intptr_t>(random.seed_at));
  keep_one("offset_at", reinterpret_cast<std::intptr_t>(random.offset_at));
}

kernels::Random kept(torch::autograd::AutogradContext& context) {
  const auto one = [&](const char* name) { return context.saved_data[name].toInt(); };
  return {.seed = static_cast<uint64_t>(one("seed")),
          .offset = static_cast<uint64_t>(one("offset")),
          .seed_at = reinterpret_cast<const int64_t*>(one("seed_at")),
          .offset_at = reinterpret_cast<const int64_t*>(one("offset_at"))};
}

}  // namespace tasks::operators
