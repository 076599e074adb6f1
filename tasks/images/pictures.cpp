#include "pictures.hpp"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <utility>

#include "jpeg.hpp"
#include "tasks/progress.hpp"

namespace tasks::images {
namespace {

struct Pictures : Dataset::Source {
  Pictures(std::vector<Picture> pictures, const PicturesOptions& options)
      : pictures_(std::move(pictures)),
        options_(options),
        mean_(at::tensor({0.485, 0.456, 0.406}, options.type) * 255),
        deviation_(at::tensor({0.229, 0.224, 0.225}, options.type) * 255) {}

  size_t size() const override { return pictures_.size(); }

  Batch fetch(c10::ArrayRef<size_t> indices) const override {
    const auto count = static_cast<int64_t>(indices.size());
    const int64_t side = options_.view.side;
    const auto pixels = at::empty({count, side, side, 3}, at::kByte);
    const auto labels = at::empty({count}, at::kLong);
    // One epoch for the whole batch, whatever the threads below are told.
    const auto epoch = static_cast<uint64_t>(Progress::current_epoch());
    at::parallel_for(0, count, 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        const size_t index = indices[static_cast<size_t>(i)];
        labels.mutable_data_ptr<int64_t>()[i] = pictures_[index].label;
        take(index, epoch, pixels[i]);
      }
    });
    return {normalised(pixels), labels};
  }

 private:
  void take(size_t index, uint64_t epoch, const at::Tensor& pixels) const {
    const auto picture = read_jpeg(pictures_[index].file);
    if (!options_.training) return show_all(picture, options_.view, pixels);
    KeyedRandom random(options_.seed, epoch, index);
    show(picture, random_view(picture.size(1), picture.size(0), options_.view, random), pixels);
  }

  // From bytes [samples, side, side, 3].
  at::Tensor normalised(const at::Tensor& pixels) const {
    const auto floats = (pixels.to(options_.type) - mean_) / deviation_;
    const auto planes = floats.permute({0, 3, 1, 2});  // which lie channels-last
    return options_.channels_last ? planes : planes.contiguous();
  }

  std::vector<Picture> pictures_;
  PicturesOptions options_;
  at::Tensor mean_, deviation_;
};

}  // namespace

std::shared_ptr<const Dataset::Source> make_source(std::vector<Picture> pictures,
                                                   const PicturesOptions& options) {
  return std::make_shared<Pictures>(std::move(pictures), options);
}

}  // namespace tasks::images
