#include "settings.hpp"

#include <fmt/format.h>

#include "tasks/options.hpp"

namespace tasks::summaries {
namespace {

constexpr int64_t kLarge = 1 << 20;

const Value& value_of(const Config& config, std::string_view key) {
  const auto* value = config.find(key);
  if (value == nullptr) throw Error(fmt::format("the configuration lacks the key '{}'", key));
  return *value;
}

TransformerOptions model_of(const Config& config) {
  TransformerOptions model{
      .width = config.integer("width", 1, kLarge),
      .heads = config.integer("heads", 1, kLarge),
      .feed_forward = config.integer("feed_forward", 1, kLarge),
      .encoder_layers = config.integer("encoder_layers", 1, 1000),
      .decoder_layers = config.integer("decoder_layers", 1, 1000),
      .dropout = config.real("dropout", 0, 0.99),
      .t5 = parse_boolean(value_of(config, "t5")),
  };
  if (const auto* own = config.find("head_width")) {
    model.head_width = parse_integer(*own, 1, kLarge);
  } else if (model.width % model.heads != 0) {
    throw Error(fmt::format("{}: {} is not a multiple of the {} heads", config.find("width")->where,
                            model.width, model.heads));
  } else {
    model.head_width = model.width / model.heads;
  }
  return model;
}

Padding padding_of(const Config& config) {
  const auto& [text, where] = value_of(config, "padding");
  if (text == "full") return Padding::full;
  if (text == "longest") return Padding::longest;
  throw Error(fmt::format("{}: expected full or longest, got '{}'.", where, text));
}

Salience salience_of(const Config& config) {
  const auto& [text, where] = value_of(config, "salience");
  if (text == "lead") return Salience::lead;
  if (text == "count") return Salience::count;
  throw Error(fmt::format("{}: expected lead or count, got '{}'", where, text));
}

}  // namespace

Settings Settings::from(const Config& config) {
  Settings settings{
      .model = model_of(config),
      .source_length = config.integer("source_length", 1, kLarge),
      .target_length = config.integer("target_length", 1, kLarge),
      .padding = padding_of(config),
      .vocabulary_size = config.integer("vocabulary_size", 3, int64_t{1} << 30),
      .weights = std::nullopt,
      .tokenizer = std::nullopt,
      .prefix = {},
      .salience = salience_of(config),
      .documents = config.integer("documents", 1, int64_t{1} << 30),
      .corpus_seed = config.integer("corpus_seed", 0, int64_t{1} << 30),
      .learning_rate = config.real("learning_rate", 0, 1e3),
      .weight_decay = config.real("weight_decay", 0, 1e3),
      .warm_up_steps = config.integer("warm_up_steps", 1, int64_t{1} << 30),
      .clip_norm = config.real("clip_norm", 0, 1e9),
  };
  settings.model.longest = std::max(settings.source_length, settings.target_length);
  if (const auto* weights = config.find("weights")) {
    if (!settings.model.t5) {
      throw Error(
          fmt::format("{}: these are weights of a T5, so the configuration also needs 't5: true'",
                      weights->where));
    }
    settings.weights = weights->text;
  }
  if (const auto* tokenizer = config.find("tokenizer")) {
    settings.tokenizer = tokenizer->text;
    settings.prefix = "summarize: ";  // what T5 was trained with
  }
  if (const auto* prefix = config.find("prefix")) settings.prefix = prefix->text;
  return settings;
}

std::vector<std::string_view> Settings::keys() {
  return {"width",          "heads",          "head_width",      "feed_forward",
          "encoder_layers", "decoder_layers", "dropout",         "t5",
          "weights",        "tokenizer",      "prefix",          "source_length",
          "target_length",  "salience",       "vocabulary_size", "documents",
          "corpus_seed",    "learning_rate",  "warm_up_steps",   "weight_decay",
          "clip_norm",      "padding"};
}

}  // namespace tasks::summaries
