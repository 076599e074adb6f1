#pragma once
/// From a picture to what a model sees of it.
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "tasks/keyed_random.hpp"

namespace tasks::images {

/// A rectangle of a picture, in pixels, and whether it is mirrored.
struct View {
  int64_t left, top, width, height;
  bool flipped = false;
};

struct ViewOptions {
  int64_t side = 160;        ///< of what the model sees, in pixels
  double smallest_crop = 1;  ///< of the picture's area; 1: training sees whole pictures
  double flip = 0;           ///< the probability that training mirrors a picture
};

/// A part of the picture that holds a random share of its area, from smallest_crop to all of it,
/// between 3:4 and 4:3: fastai's RandomResizedCrop (fastai/vision/augment.py), which is Szegedy et
/// al. 2015, "Going deeper with convolutions", section 6.
View random_view(int64_t width, int64_t height, const ViewOptions& options, KeyedRandom& random);

/// Writes what a model sees while it trains into `pixels`, uint8 [side, side, 3].
void show(const at::Tensor& picture, const View& view, at::Tensor pixels);

/// The same for evaluation: the whole picture, 14 % larger than the side where training crops,
/// since training has seen animals enlarged; of that the middle. As fastai does it.
void show_all(const at::Tensor& picture, const ViewOptions& options, at::Tensor pixels);

}  // namespace tasks::images
