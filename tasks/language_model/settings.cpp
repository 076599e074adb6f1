#include "settings.hpp"

#include <fmt/format.h>

#include "tasks/options.hpp"

namespace tasks::language_model {

Settings Settings::from(const Config& config) {
  constexpr int64_t large = 1 << 20;
  const Settings settings{
      .width = config.integer("width", 1, large),
      .heads = config.integer("heads", 1, large),
      .layers = config.integer("layers", 0, 1000),
      .feed_forward = config.integer("feed_forward", 1, large),
      .dropout = config.real("dropout", 0, 0.99),
      .sequence_length = config.integer("sequence_length", 1, large),
      .stride = config.integer("stride", 1, large),
      .vocabulary_size = config.integer("vocabulary_size", 2, int64_t{1} << 30),
      .corpus_words = config.integer("corpus_words", 1, int64_t{1} << 30),
      .corpus_seed = config.integer("corpus_seed", 0, int64_t{1} << 30),
      .learning_rate = config.real("learning_rate", 0, 1e3),
      .weight_decay = config.real("weight_decay", 0, 1e3),
  };
  if (settings.width % settings.heads != 0) {
    throw Error(fmt::format("{}: {} is not a multiple of the {} heads", config.find("width")->where,
                            settings.width, settings.heads));
  }
  return settings;
}

std::vector<std::string_view> Settings::keys() {
  return {"width",           "heads",        "layers",        "feed_forward",
          "dropout",         "stride",       "corpus_seed",   "sequence_length",
          "vocabulary_size", "corpus_words", "learning_rate", "weight_decay"};
}

}  // namespace tasks::language_model
