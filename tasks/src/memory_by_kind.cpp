#include "memory_by_kind.hpp"

#include <c10/core/CachingDeviceAllocator.h>
#include <malloc.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>

#include "instrumentation/monitoring.hpp"

namespace tasks::memory {
namespace {

namespace monitoring = instrumentation::monitoring;

// The first steps make the optimizer's state and DDP's buckets.
constexpr int kFirstLook = 3, kLooks = 2;

struct Looks {
  int step = 0;  // optimizer steps begun
  uint64_t before_forward = 0;
  uint64_t activations = 0;

  bool are_on() const { return step >= kFirstLook && step < kFirstLook + kLooks; }
};

Looks looks;

uint64_t bytes_of(const at::Tensor& tensor) { return tensor.defined() ? tensor.nbytes() : 0; }

uint64_t bytes_of(const torch::optim::OptimizerParamState& state) {
  if (const auto* adamw = dynamic_cast<const torch::optim::AdamWParamState*>(&state)) {
    return bytes_of(adamw->exp_avg()) + bytes_of(adamw->exp_avg_sq()) +
           bytes_of(adamw->max_exp_avg_sq());
  }
  if (const auto* adam = dynamic_cast<const torch::optim::AdamParamState*>(&state)) {
    return bytes_of(adam->exp_avg()) + bytes_of(adam->exp_avg_sq()) +
           bytes_of(adam->max_exp_avg_sq());
  }
  if (const auto* sgd = dynamic_cast<const torch::optim::SGDParamState*>(&state)) {
    return bytes_of(sgd->momentum_buffer());
  }
  return 0;
}

instrumentation::MemoryRecord memory_of(const torch::optim::Optimizer& optimizer) {
  instrumentation::MemoryRecord record{};
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      record.parameters += bytes_of(parameter);
      record.gradients += bytes_of(parameter.grad());
    }
  }
  record.optimizer = state_bytes(optimizer);
  return record;
}

}  // namespace

uint64_t allocated(c10::Device device) {
  if (device.is_cpu()) {
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
#else
    return 0;
#endif
  }
  const auto stats = c10::getDeviceAllocator(device.type())
                         ->getDeviceStats(std::max<c10::DeviceIndex>(0, device.index()));
  return static_cast<uint64_t>(stats.allocated_bytes[0].current);
}

uint64_t state_bytes(const torch::optim::Optimizer& optimizer) {
  uint64_t bytes = 0;
  for (const auto& [parameter, state] : optimizer.state()) bytes += bytes_of(*state);
  return bytes;
}

void forward_begins(c10::Device device) {
  if (looks.are_on()) looks.before_forward = allocated(device);
}

void forward_ended(c10::Device device) {
  if (!looks.are_on()) return;
  const uint64_t after = allocated(device);
  if (after > looks.before_forward) {
    looks.activations = std::max(looks.activations, after - looks.before_forward);
  }
}

void optimizer_begins(const torch::optim::Optimizer& optimizer) {
  ++looks.step;
  if (looks.step != kFirstLook + kLooks) return;
  auto record = memory_of(optimizer);
  record.activations = looks.activations;
  monitoring::record_one(instrumentation::Kind::memory, record);
}

}  // namespace tasks::memory
