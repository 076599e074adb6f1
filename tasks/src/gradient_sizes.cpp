#include "gradient_sizes.hpp"

#include <ATen/Functions.h>

#include <algorithm>
#include <chrono>

#include "instrumentation/monitoring.hpp"

namespace tasks {
namespace {

using instrumentation::GradientSizesRecord;
using instrumentation::kGradientBins;
using instrumentation::kLeastGradient;

constexpr std::chrono::seconds kBetweenLooks{10};
constexpr int kFirstSteps = 3;  // not looked at: memory and buckets come to rest

void add_gradient(const at::Tensor& gradient, GradientSizesRecord& record) {
  const auto sizes = gradient.detach().abs().flatten().to(at::kDouble);
  if (sizes.numel() == 0) return;
  // bincount rather than histc, which has no deterministic way on GPUs. NaN or an infinity ends in
  // the bins at the ends.
  const auto bin = sizes.log2().floor().sub(kLeastGradient).nan_to_num(0, kGradientBins, 0);
  const auto counts =
      at::bincount(bin.clamp(0, static_cast<int64_t>(kGradientBins) - 1).to(at::kLong),
                   /*weights=*/{}, kGradientBins)
          .to(at::kCPU);
  const auto figures =
      at::stack({sizes.eq(0).sum().to(at::kDouble), sizes.max(), sizes.sum(), sizes.square().sum()})
          .to(at::kCPU);
  const auto* values = figures.const_data_ptr<double>();
  const auto zeros = static_cast<uint32_t>(values[0]);
  record.zeros += zeros;
  record.largest = std::max(record.largest, values[1]);
  record.sum += values[2];
  record.sum_of_squares += values[3];
  for (size_t i = 0; i < kGradientBins; ++i) {
    record.bins[i] += static_cast<uint32_t>(counts.const_data_ptr<int64_t>()[i]);
  }
  record.bins[0] -= zeros;
}

bool is_time() {
  static int steps = 0;
  static std::chrono::steady_clock::time_point last;
  if (++steps <= kFirstSteps) return false;
  const auto now = std::chrono::steady_clock::now();
  if (steps > kFirstSteps + 1 && now - last < kBetweenLooks) return false;
  last = now;
  return true;
}

}  // namespace

void record_gradient_sizes(const torch::optim::Optimizer& optimizer, uint64_t step) {
  if (!is_time()) return;
  const at::NoGradGuard no_grad;
  GradientSizesRecord record{};
  record.step = step;
  for (const auto& group : optimizer.param_groups()) {
    for (const auto& parameter : group.params()) {
      const auto& gradient = parameter.grad();
      if (gradient.defined() && !gradient.is_sparse()) add_gradient(gradient, record);
    }
  }
  instrumentation::monitoring::record_one(instrumentation::Kind::gradient_sizes, record);
}

}  // namespace tasks
