#pragma once
/// What a configuration of the images says beside the options of every trainer.
#include <string_view>
#include <vector>

#include "breeds.hpp"
#include "tasks/config.hpp"
#include "views.hpp"
#include "xresnet.hpp"

namespace tasks::images {

struct Settings {
  BreedsOptions breeds;  ///< of the built-in data
  ViewOptions view;
  bool keep_decoded;     ///< see PicturesOptions
  XResNetOptions model;  ///< its classes are the data's
  double learning_rate;  ///< the largest of the one-cycle schedule
  double weight_decay;

  /// Throws Error for a missing key or a value out of range.
  static Settings from(const Config& config);
  static std::vector<std::string_view> keys();
};

}  // namespace tasks::images
