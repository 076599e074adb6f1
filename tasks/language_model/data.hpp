#pragma once
/// The text that a language model learns, as numbers.
#include <ATen/core/Tensor.h>

#include <optional>

#include "settings.hpp"
#include "tasks/options.hpp"
#include "tasks/task.hpp"

namespace tasks::language_model {

struct Data {
  at::Tensor train, validation, test;  ///< int32 [words]
  int64_t vocabulary = 0;              ///< every word is below it
  std::optional<double> floor;         ///< entropy per word in nats, where it is known

  const at::Tensor& split(std::string_view name) const;
};

/// The text of the options' folder, or of the built-in corpus without one. Throws Error for a split
/// that is shorter than one window.
Data load_data(const Options& options, const Settings& settings);

/// The mean cross-entropy, in nats a word, of predicting each word of `text` by its frequency in
/// `train` alone. Every word of the vocabulary counts once more than it is there, so that one that
/// is only in `text` is possible; <unk> is a word like any other.
double unigram_cross_entropy(const at::Tensor& train, const at::Tensor& text, int64_t vocabulary);

}  // namespace tasks::language_model
