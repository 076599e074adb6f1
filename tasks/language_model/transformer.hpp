#pragma once
/// A causal transformer language model (Vaswani et al. 2017, https://arxiv.org/abs/1706.03762):
/// layer norms after the residual sums, ReLU, one more layer norm before the vocabulary.
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "distributed_utils/self_synchronized.hpp"
#include "operators/embedding_rows.hpp"
#include "operators/narrow_copies.hpp"
#include "tasks/task.hpp"

namespace tasks::language_model {

struct TransformerOptions {
  int64_t vocabulary = 0;
  int64_t sequence_length = 0;  ///< the longest input
  int64_t width = 0;            ///< a multiple of heads
  int64_t heads = 0;
  int64_t layers = 0;
  int64_t feed_forward = 0;
  double dropout = 0;
  Products products = Products::as_stored;  ///< bf16 or fp16: as under Python's autocast
  /// Given: products of these copies of the parameters, without autocast.
  std::shared_ptr<operators::NarrowCopies> copies = nullptr;
  bool unsorted_embedding = false;  ///< operators/embedding.hpp
  int64_t most_words = 0;        ///< in a training batch, for unsorted_embedding on several ranks
  bool fused_attention = false;  ///< operators/attention.hpp
  bool fused_norm = false;       ///< operators/residual_norm.hpp
  bool fused_relu = false;       ///< operators/relu_dropout.hpp
  bool without_decoder = false;  ///< compute() ends with what the decoder would get
};

/// Sines and cosines that tell positions apart, [positions, width]; section 3.5 of the paper.
torch::Tensor sinusoidal_positions(int64_t positions, int64_t width);

/// Input: int64 [batch, sequence]; returns logits [batch, sequence, vocabulary]. The logits at a
/// position depend on the words up to it, never on later ones. They are of the parameters' type, or
/// of the products'. Without the decoder: the hidden states that it makes logits of, [batch,
/// sequence, width].
class Transformer : public Model, public distributed_utils::SelfSynchronized {
 public:
  explicit Transformer(const TransformerOptions& options);

  std::vector<at::Tensor> synchronize_over(const distributed_utils::Group& group) override;

  /// The layers.
  std::vector<std::shared_ptr<distributed_utils::Block>> blocks() const override;

  const torch::nn::Linear& decoder() const { return decoder_; }

 private:
  torch::Tensor compute(const Input& input) override;
  torch::Tensor through_layers(torch::Tensor hidden);

  Products autocast_;
  bool unsorted_embedding_;
  int64_t most_words_;
  bool fused_norm_;
  bool without_decoder_;
  std::shared_ptr<operators::NarrowCopies> copies_;
  torch::nn::Embedding embedding_;
  c10::intrusive_ptr<operators::EmbeddingRows> embedding_rows_;  // null: others average it
  torch::Tensor positions_;
  torch::nn::ModuleList layers_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear decoder_;
};

}  // namespace tasks::language_model
