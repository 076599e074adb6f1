#pragma once
/// What a configuration of this task says beside the options of every trainer.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attention.hpp"
#include "stories.hpp"
#include "tasks/config.hpp"

namespace tasks::summaries {

struct Settings {
  TransformerOptions model;              ///< without a vocabulary, which the data decide
  int64_t source_length, target_length;  ///< of documents and summaries, in words, ends included
  int64_t vocabulary_size;               ///< at most
  std::optional<std::filesystem::path> weights;    ///< of a T5, as safetensors
  std::optional<std::filesystem::path> tokenizer;  ///< a SentencePiece model; none: words
  std::string prefix;                              ///< before every document
  Salience salience;                               ///< of the built-in documents
  int64_t documents;    ///< built in, for training; a twentieth as many for each other split
  int64_t corpus_seed;  ///< another seed, other documents
  double learning_rate, weight_decay;
  int64_t warm_up_steps;
  double clip_norm;  ///< of all gradients together; 0: gradients stay as they are

  /// Throws Error for a missing key or a value out of range.
  static Settings from(const Config& config);
  static std::vector<std::string_view> keys();
};

}  // namespace tasks::summaries
