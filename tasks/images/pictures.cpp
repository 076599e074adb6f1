#include "pictures.hpp"

#include <ATen/Dispatch.h>
#include <ATen/Functions.h>

#include <mutex>
#include <utility>

#include "jpeg.hpp"
#include "tasks/parallel.hpp"
#include "tasks/progress.hpp"

namespace tasks::images {
namespace {

struct Pictures : Dataset::Source {
  Pictures(std::vector<Picture> pictures, const PicturesOptions& options)
      : pictures_(std::move(pictures)),
        options_(options),
        normalised_(normalised(options.type)),
        decoded_(options.keep_decoded ? pictures_.size() : 0) {}

  size_t size() const override { return pictures_.size(); }

  Batch fetch(c10::ArrayRef<size_t> indices) const override {
    const auto count = static_cast<int64_t>(indices.size());
    const int64_t side = options_.view.side;
    const auto planes =
        options_.channels_last
            ? new_tensor({count, side, side, 3}, options_.type).permute({0, 3, 1, 2})
            : new_tensor({count, 3, side, side}, options_.type);
    const auto labels = new_tensor({count}, at::kLong);
    // One epoch for the whole batch, whatever the threads below are told.
    const auto epoch = static_cast<uint64_t>(Progress::current_epoch());
    parallel_for(count, [&](int64_t i) {
      const auto pixels = at::empty({side, side, 3}, at::kByte);
      const size_t index = indices[static_cast<size_t>(i)];
      labels.mutable_data_ptr<int64_t>()[i] = pictures_[index].label;
      take(index, epoch, pixels);
      normalise(pixels, planes[i]);
    });
    return {planes, labels};
  }

 private:
  // What each byte of each colour becomes, [256, 3]: looked up faster than computed.
  static at::Tensor normalised(torch::Dtype type) {
    const auto mean = at::tensor({0.485, 0.456, 0.406}, type) * 255;
    const auto deviation = at::tensor({0.229, 0.224, 0.225}, type) * 255;
    return (at::arange(256, type).unsqueeze(1) - mean) / deviation;
  }

  struct Decoded {
    std::once_flag once;
    at::Tensor picture;
  };

  at::Tensor decoded(size_t index) const {
    const auto& file = pictures_[index].file;
    if (!options_.keep_decoded) return read_jpeg(file);
    auto& kept = decoded_[index];
    std::call_once(kept.once, [&] { kept.picture = read_jpeg(file); });
    return kept.picture;
  }

  void take(size_t index, uint64_t epoch, const at::Tensor& pixels) const {
    const auto picture = decoded(index);
    if (!options_.training) return show_all(picture, options_.view, pixels);
    KeyedRandom random(options_.seed, epoch, index);
    show(picture, random_view(picture.size(1), picture.size(0), options_.view, random), pixels);
  }

  // pixels: uint8 [side, side, 3]; planes: [3, side, side], in either order.
  void normalise(const at::Tensor& pixels, const at::Tensor& planes) const {
    AT_DISPATCH_FLOATING_TYPES(options_.type, "normalise", [&] {
      const auto* table = normalised_.const_data_ptr<scalar_t>();
      const auto* bytes = pixels.const_data_ptr<uint8_t>();
      auto* numbers = planes.mutable_data_ptr<scalar_t>();
      const int64_t of_colour = planes.stride(0), of_pixel = planes.stride(2);
      for (int64_t pixel = 0; pixel < pixels.size(0) * pixels.size(1); ++pixel) {
        for (int64_t colour = 0; colour < 3; ++colour) {
          numbers[pixel * of_pixel + colour * of_colour] = table[*bytes++ * 3 + colour];
        }
      }
    });
  }

  std::vector<Picture> pictures_;
  PicturesOptions options_;
  at::Tensor normalised_;
  mutable std::vector<Decoded> decoded_;
};

}  // namespace

std::shared_ptr<const Dataset::Source> make_source(std::vector<Picture> pictures,
                                                   const PicturesOptions& options) {
  return std::make_shared<Pictures>(std::move(pictures), options);
}

}  // namespace tasks::images
