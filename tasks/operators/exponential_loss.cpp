#include "operators/exponential_loss.hpp"

#include <ATen/Functions.h>

#include "kernels/kernels.hpp"
#include "operators/gpu.hpp"
#include "operators/products.hpp"

namespace tasks::operators {
namespace {

constexpr int64_t kLine = 64;  // numbers: 128 bytes, what a GPU's caches move

}  // namespace

bool has_exponential_loss(const at::Tensor& hidden, const at::Tensor& weight) {
  return hidden.is_cuda() && hidden.scalar_type() == at::kBFloat16 &&
         weight.scalar_type() == at::kBFloat16 && hidden.size(1) % 8 == 0 &&
         hidden.size(1) <= kernels::kMostExponentialWidth && begins_at_vectors(hidden) &&
         begins_at_vectors(weight) && kernels::has_exponential_losses(hidden.device().index());
}

ExponentialLoss exponential_loss(const at::Tensor& hidden, const at::Tensor& weight,
                                 const at::Tensor& bias, const at::Tensor& target,
                                 int64_t ignore_index, bool gradient) {
  const int64_t rows = hidden.size(0), vocabulary = weight.size(0);
  const int64_t stride = (vocabulary + kLine - 1) / kLine * kLine;
  const auto wide = hidden.options().dtype(at::kFloat);
  const auto tiles = at::empty({kernels::exponential_tile_bytes(rows, hidden.size(1))},
                               hidden.options().dtype(at::kByte));
  const auto shifts = at::empty({rows}, wide);
  const auto partials = at::empty({kernels::exponential_parts(vocabulary), rows}, wide);
  const auto biases = bias.contiguous();
  const auto indices = target.contiguous();
  ExponentialLoss made{
      .losses = at::empty({rows}, wide), .exponentials = {}, .factors = at::empty({rows}, wide)};
  if (gradient) {
    made.exponentials = at::empty({rows, stride}, hidden.options()).narrow(1, 0, vocabulary);
  }
  kernels::exponential_losses(
      {.hidden = hidden.const_data_ptr(),
       .weight = weight.const_data_ptr(),
       .bias = biases.const_data_ptr(),
       .target = indices.const_data_ptr<int64_t>(),
       .tiles = tiles.mutable_data_ptr(),
       .shifts = shifts.mutable_data_ptr<float>(),
       .partials = partials.mutable_data_ptr<float>(),
       .losses = made.losses.mutable_data_ptr<float>(),
       .factors = made.factors.mutable_data_ptr<float>(),
       .exponentials = gradient ? made.exponentials.mutable_data_ptr() : nullptr,
       .rows = rows,
       .width = hidden.size(1),
       .vocabulary = vocabulary,
       .stride = stride,
       .ignore_index = ignore_index},
      stream_of(hidden));
  return made;
}

// One product makes both: behind the hidden vectors, times their factors, stand the factors.
WeightedSums weighted_sums(const at::Tensor& exponentials, const at::Tensor& factors,
                           const at::Tensor& hidden) {
  const int64_t rows = hidden.size(0), width = hidden.size(1), vocabulary = exponentials.size(1);
  const auto weighted = at::empty({rows, width + kernels::kWeightColumns}, hidden.options());
  const auto weights = factors.contiguous();
  kernels::weighted_rows(hidden.const_data_ptr(), weights.const_data_ptr<float>(), rows, width,
                         weighted.mutable_data_ptr(), stream_of(hidden));
  const auto both = product(exponentials.t(), weighted);
  WeightedSums made{at::empty({vocabulary, width}, both.options()),
                    at::empty({vocabulary}, both.options())};
  kernels::split_sums(both.const_data_ptr<float>(), vocabulary, width,
                      made.product.mutable_data_ptr<float>(), made.sums.mutable_data_ptr<float>(),
                      stream_of(hidden));
  return made;
}

}  // namespace tasks::operators
