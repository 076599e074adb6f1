#pragma once
/// How far forecasts are from what came, for each sample of a batch; both are
/// [batch, channels, height, width].
#include <ATen/core/Tensor.h>

namespace tasks::weather {

/// ||forecast - truth|| / ||truth|| over all of a sample, [batch].
at::Tensor relative_errors(const at::Tensor& forecast, const at::Tensor& truth);

/// The mean square error of the first channel (u10) in fp64, [batch]. Rows count by the cosine of
/// their latitude, as in WeatherBench (Rasp et al. 2020, https://arxiv.org/abs/2002.00469, eq. 2).
/// Latitudes are the tutorial's, with both poles: 90 - 180 i / (height - 1) degrees.
at::Tensor weighted_square_errors(const at::Tensor& forecast, const at::Tensor& truth);

}  // namespace tasks::weather
