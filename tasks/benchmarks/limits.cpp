#include "limits.hpp"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <functional>

namespace limits {
namespace {

void wait_for(torch::Device device) {
  if (device.is_cuda()) torch::cuda::synchronize(device.index());
}

/// The median of nine means.
double median_ms(torch::Device device, int calls, const std::function<void()>& work) {
  work();
  std::vector<double> all;
  for (int repeat = 0; repeat < 9; ++repeat) {
    wait_for(device);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) work();
    wait_for(device);
    const std::chrono::duration<double, std::milli> taken =
        std::chrono::steady_clock::now() - start;
    all.push_back(taken.count() / calls);
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

/// In which type products are made, and logits kept.
torch::Dtype product_type(const tasks::Options& options) {
  if (options.products == tasks::Products::bf16) return torch::kBFloat16;
  if (options.products == tasks::Products::tf32 && options.fast.has("loss")) return torch::kHalf;
  return options.precision;
}

}  // namespace

double bytes_per_ms(torch::Device device) {
  const int64_t elements = int64_t{1} << (device.is_cuda() ? 28 : 24);
  const auto from = torch::ones({elements}, device);
  auto to = torch::empty_like(from);
  return 2.0 * double(from.nbytes()) / median_ms(device, 5, [&] { to.copy_(from); });
}

double flops_per_ms(torch::Device device, torch::Dtype type) {
  const int64_t n = device.is_cuda() ? 8192 : 512;
  const auto options = torch::dtype(type).device(device);
  const auto a = torch::randn({n, n}, options);
  const auto b = torch::randn({n, n}, options);
  return 2.0 * double(n) * double(n) * double(n) / median_ms(device, 5, [&] { at::mm(a, b); });
}

double logits_bytes(int64_t targets, int64_t vocabulary, torch::Dtype type, bool kept) {
  return (kept ? 6.0 : 3.0) * double(targets) * double(vocabulary) *
         double(torch::elementSize(type));
}

double step_ms(const torch::nn::Module& model, int64_t targets, const tasks::Options& options,
               torch::Device device) {
  const auto type = product_type(options);
  const double bytes = bytes_per_ms(device);
  const double flops = flops_per_ms(device, type);
  double parameters = 0, inner = 0, last = 0;
  int64_t vocabulary = 0;
  for (const auto& item : model.named_parameters()) {
    const auto count = double(item.value().numel());
    parameters += count;
    if (item.value().dim() != 2 || item.key().ends_with("embedding.weight")) continue;
    if (item.key().ends_with("decoder.weight")) {
      last = count;
      vocabulary = item.value().size(0);
    } else {
      inner += count;
    }
  }
  const double for_targets = 6.0 * double(targets);
  // The fast loss of copies in bf16 keeps no logits.
  const bool kept = !options.fast.has("loss") || type != torch::kBFloat16;
  const double logits = logits_bytes(targets, vocabulary, type, kept);
  const double optimizer = 7.0 * parameters * double(torch::elementSize(options.precision));
  return for_targets * inner / flops + std::max(for_targets * last / flops, logits / bytes) +
         optimizer / bytes;
}

}  // namespace limits
