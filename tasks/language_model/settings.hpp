#pragma once
/// What a configuration of the language model says beside the options of every trainer.
#include <cstdint>
#include <string_view>
#include <vector>

#include "tasks/config.hpp"

namespace tasks::language_model {

struct Settings {
  int64_t width, heads, layers, feed_forward;
  double dropout;
  int64_t sequence_length;
  int64_t stride;           ///< between training windows; evaluation predicts every word once
  int64_t vocabulary_size;  ///< at most, <unk> and <eos> included
  int64_t corpus_words;     ///< of the built-in corpus's training split; the others: a tenth each
  int64_t corpus_seed;      ///< another seed, another text of the same language
  double learning_rate, weight_decay;

  /// Throws Error for a missing key or a value out of range.
  static Settings from(const Config& config);
  static std::vector<std::string_view> keys();
};

}  // namespace tasks::language_model
