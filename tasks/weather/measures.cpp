#include "measures.hpp"

#include <ATen/Functions.h>

#include <algorithm>
#include <numbers>

namespace tasks::weather {
namespace {

/// Of mean 1, [height, 1].
at::Tensor weights_of_rows(int64_t height, at::Device device) {
  const auto row = at::arange(height, at::TensorOptions(at::kDouble).device(device));
  const auto steps = static_cast<double>(std::max<int64_t>(height - 1, 1));
  const auto cosine = at::cos(std::numbers::pi / 2 - std::numbers::pi * row / steps);
  return (cosine / cosine.mean()).unsqueeze(1);
}

at::Tensor norms(const at::Tensor& samples) {
  return at::linalg_vector_norm(samples.flatten(1), 2, at::IntArrayRef{1});
}

}  // namespace

at::Tensor relative_errors(const at::Tensor& forecast, const at::Tensor& truth) {
  return norms(forecast - truth) / norms(truth);
}

at::Tensor weighted_square_errors(const at::Tensor& forecast, const at::Tensor& truth) {
  const auto error = forecast.select(1, 0).to(at::kDouble) - truth.select(1, 0).to(at::kDouble);
  return (error.square() * weights_of_rows(error.size(1), error.device())).mean({1, 2});
}

}  // namespace tasks::weather
