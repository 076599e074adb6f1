#include "ddp/ddp_buckets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include "distributed_utils/error.hpp"

namespace distributed_utils::detail {

Buckets default_buckets(const std::vector<at::Tensor>& parameters,
                        const DistributedDataParallelOptions& options) {
  auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
      parameters, {static_cast<size_t>(options.first_bucket_bytes),
                   static_cast<size_t>(options.bucket_cap_bytes)});
  // Gradients become ready roughly in the reverse order of the parameters.
  std::reverse(buckets.begin(), buckets.end());
  return buckets;
}

void check_buckets(const Buckets& buckets, size_t parameters) {
  std::vector<bool> seen(parameters, false);
  size_t count = 0;
  bool valid = true;
  for (const auto& bucket : buckets) {
    valid = valid && !bucket.empty();
    for (const size_t index : bucket) {
      valid = valid && index < parameters && !seen[index];
      if (valid) seen[index] = true;
      ++count;
    }
  }
  if (valid && count == parameters) return;
  throw Error(
      fmt::format("DistributedDataParallel: bucket_indices must name each of the {} trainable "
                  "parameters once. Fix: pass those of a run of the same model, or none.",
                  parameters));
}

Buckets for_reducer(const Buckets& buckets, const std::vector<size_t>& averaged) {
  Buckets result;
  for (const auto& bucket : buckets) {
    std::vector<size_t> kept;
    for (const size_t index : bucket) {
      const auto at = std::lower_bound(averaged.begin(), averaged.end(), index);
      if (at != averaged.end() && *at == index) kept.push_back(size_t(at - averaged.begin()));
    }
    if (!kept.empty()) result.push_back(std::move(kept));
  }
  return result;
}

Buckets for_users(Buckets buckets, const std::vector<size_t>& averaged, size_t parameters) {
  for (auto& bucket : buckets) {
    for (auto& index : bucket) index = averaged[index];
  }
  for (size_t i = 0; i < parameters; ++i) {
    if (!std::binary_search(averaged.begin(), averaged.end(), i)) buckets.push_back({i});
  }
  return buckets;
}

}  // namespace distributed_utils::detail
