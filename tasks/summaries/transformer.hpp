#pragma once
/// The encoder-decoder that writes summaries.
#include <memory>

#include "attention.hpp"
#include "distributed_utils/self_synchronized.hpp"
#include "tasks/task.hpp"

namespace tasks::summaries {

/// The word that fills rows up to their length. A decoder's input starts with it, as T5's does.
constexpr int64_t kPad = 0;
/// Ends documents and summaries.
constexpr int64_t kEnd = 1;
/// Stands for each word that a vocabulary lacks.
constexpr int64_t kUnknown = 2;

/// Sines and cosines that tell positions apart, [positions, width], as section 3.5 of Vaswani et
/// al. 2017 has them.
torch::Tensor sinusoids(int64_t positions, int64_t width);

class Stack;

/// Input: documents, int64 [batch, source], and what a decoder is told, int64 [batch, target]: kPad
/// and then the summary but for its last word. Returns logits [batch, target, vocabulary]; those at
/// a place depend on the words before it and on the document's, kPad left out. A document has at
/// least one word that is not kPad. Parameters are named as Hugging Face names those of T5.
class EncoderDecoder : public Model, public distributed_utils::SelfSynchronized {
 public:
  explicit EncoderDecoder(const TransformerOptions& options);

  std::vector<at::Tensor> synchronize_over(const distributed_utils::Group& group) override;

  /// What a decoder reads of the documents, [batch, source, width].
  torch::Tensor encode(const torch::Tensor& documents);
  /// Logits, [batch, target, vocabulary].
  torch::Tensor decode(const torch::Tensor& told, const torch::Tensor& encoded,
                       const torch::Tensor& documents);

  const TransformerOptions& options() const { return options_; }

 private:
  torch::Tensor compute(const Input& input) override;
  torch::Tensor embed(const torch::Tensor& words);
  /// 0 for words and minus infinity for kPad, [batch, 1, 1, source].
  torch::Tensor mask_of(const torch::Tensor& documents) const;

  TransformerOptions options_;
  torch::nn::Embedding shared_;
  torch::Tensor positions_;  // own style only
  std::shared_ptr<Stack> encoder_, decoder_;
};

}  // namespace tasks::summaries
