#pragma once
/// A T5 that others have trained, from a safetensors file with Hugging Face's names.
#include <filesystem>

#include "distributed_utils/safetensors.hpp"
#include "transformer.hpp"

namespace tasks::summaries {

class Weights {
 public:
  /// Throws distributed_utils' Error for a file that is not a safetensors, Error for one without a
  /// "shared.weight" of two dimensions.
  explicit Weights(std::filesystem::path file);

  /// Rows of the embedding, which a file may have more of than its tokenizer has words.
  int64_t vocabulary() const { return tensors_.at("shared.weight").size(0); }

  /// Gives all parameters the file's values, in their own type. Throws Error that names the tensor
  /// for one that is missing, of another shape, or of no such model; and for a model whose last
  /// layer is not its embedding (T5 1.1), which this one cannot be.
  void load_into(EncoderDecoder& model) const;

 private:
  void check_others(const EncoderDecoder& model) const;

  std::filesystem::path file_;
  distributed_utils::StateDict tensors_;
};

}  // namespace tasks::summaries
