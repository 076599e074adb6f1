#include "settings.hpp"

#include <fmt/format.h>

#include <sstream>

#include "tasks/options.hpp"

namespace tasks::images {
namespace {

constexpr int64_t kMostSide = 4096, kMostPictures = 10'000'000;

const Value& need(const Config& config, std::string_view key) {
  if (const auto* value = config.find(key)) return *value;
  throw Error(
      fmt::format("the configuration has no '{}'; start from a complete one: base: laptop", key));
}

// "3 4 6 3"
std::vector<int64_t> parse_layers(const Value& value) {
  std::vector<int64_t> layers;
  std::istringstream words(value.text);
  for (std::string word; words >> word;) {
    layers.push_back(parse_integer({word, value.where}, 1, 100));
  }
  if (layers.empty() || layers.size() > 6) {
    throw Error(fmt::format("{}: '{}' must be the blocks of 1 to 6 stages, such as 3 4 6 3",
                            value.where, value.text));
  }
  return layers;
}

}  // namespace

Settings Settings::from(const Config& config) {
  return {.breeds = {.side = config.integer("picture_side", 8, kMostSide),
                     .train_pictures = config.integer("train_pictures", 1, kMostPictures),
                     .evaluation_pictures = config.integer("evaluation_pictures", 1, kMostPictures),
                     .spread = config.real("spread", 0.01, 10),
                     .seed = static_cast<uint64_t>(
                         config.integer("pictures_seed", 0, int64_t{1} << 30))},
          .view = {.side = config.integer("side", 8, kMostSide),
                   .smallest_crop = config.real("smallest_crop", 0.01, 1),
                   .flip = config.real("flip", 0, 1)},
          .keep_decoded = parse_boolean(need(config, "keep_decoded")),
          .model = {.width = config.integer("width", 2, 4096),
                    .layers = parse_layers(need(config, "layers")),
                    .bottleneck = parse_boolean(need(config, "bottleneck")),
                    .channels_last = parse_boolean(need(config, "channels_last"))},
          .learning_rate = config.real("learning_rate", 0, 1e3),
          .weight_decay = config.real("weight_decay", 0, 1e3)};
}

std::vector<std::string_view> Settings::keys() {
  return {"picture_side",  "train_pictures", "evaluation_pictures", "spread",
          "pictures_seed", "side",           "smallest_crop",       "flip",
          "width",         "layers",         "bottleneck",          "channels_last",
          "learning_rate", "weight_decay",   "keep_decoded"};
}

}  // namespace tasks::images
