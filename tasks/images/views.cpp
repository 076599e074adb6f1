#include "views.hpp"

#include <ATen/Functions.h>

#include <cmath>

namespace tasks::images {
namespace {

constexpr double kTallest = 3.0 / 4, kWidest = 4.0 / 3;
constexpr double kEnlarged = 0.14;

// The largest part in the middle that is neither taller nor wider than crops may be.
View middle(int64_t width, int64_t height) {
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  View view{0, 0, width, height};
  if (ratio < kTallest) view.height = static_cast<int64_t>(static_cast<double>(width) / kTallest);
  if (ratio > kWidest) view.width = static_cast<int64_t>(static_cast<double>(height) * kWidest);
  view.left = (width - view.width) / 2;
  view.top = (height - view.height) / 2;
  return view;
}

View random_crop(int64_t width, int64_t height, double smallest, KeyedRandom& random) {
  constexpr int kAttempts = 10;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const double area =
        random.uniform(smallest, 1) * static_cast<double>(width) * static_cast<double>(height);
    const double ratio = std::exp(random.uniform(std::log(kTallest), std::log(kWidest)));
    const int64_t wide = std::lround(std::sqrt(area * ratio));
    const int64_t high = std::lround(std::sqrt(area / ratio));
    if (wide > 0 && high > 0 && wide <= width && high <= height) {
      return {random.below(width - wide + 1), random.below(height - high + 1), wide, high};
    }
  }
  return middle(width, height);
}

// picture: uint8 [height, width, 3]. Bytes in, bytes out: ATen resizes those eight times as fast as
// floats, where they are channels-last, as pictures are.
at::Tensor resized(const at::Tensor& picture, int64_t side) {
  if (picture.size(0) == side && picture.size(1) == side) return picture;
  const auto planes = picture.permute({2, 0, 1}).unsqueeze(0);
  return at::_upsample_bilinear2d_aa(planes.contiguous(at::MemoryFormat::ChannelsLast),
                                     {side, side}, /*align_corners=*/false)
      .squeeze(0)
      .permute({1, 2, 0});
}

}  // namespace

View random_view(int64_t width, int64_t height, const ViewOptions& options, KeyedRandom& random) {
  const bool flipped = random.uniform() < options.flip;
  View view{0, 0, width, height};
  if (options.smallest_crop < 1) view = random_crop(width, height, options.smallest_crop, random);
  view.flipped = flipped;
  return view;
}

void show(const at::Tensor& picture, const View& view, at::Tensor pixels) {
  const auto part = picture.narrow(0, view.top, view.height).narrow(1, view.left, view.width);
  const auto shown = resized(part, pixels.size(0));
  pixels.copy_(view.flipped ? shown.flip(1) : shown);
}

void show_all(const at::Tensor& picture, const ViewOptions& options, at::Tensor pixels) {
  const int64_t extra =
      options.smallest_crop < 1
          ? static_cast<int64_t>(std::ceil(static_cast<double>(options.side) * kEnlarged / 8)) * 8
          : 0;
  const auto enlarged = resized(picture, options.side + extra);
  pixels.copy_(enlarged.narrow(0, extra / 2, options.side).narrow(1, extra / 2, options.side));
}

}  // namespace tasks::images
