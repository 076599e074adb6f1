#pragma once
/// The model that fsdp_time trains: GPT-2's layers (Radford et al. 2019), each a Block.
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <memory>
#include <vector>

#include "distributed_utils/block.hpp"

namespace gpt {

struct Shape {
  int64_t width = 2048;
  int64_t layers = 16;
  int64_t heads = 16;
  int64_t inner = 8192;  ///< of the feed-forward layers
  int64_t vocabulary = 32'768;
  int64_t sequence = 2048;
};

class Model : public torch::nn::Module {
 public:
  explicit Model(const Shape& shape);

  /// tokens: [batch, sequence], int64. Returns logits: [batch, sequence, vocabulary].
  torch::Tensor forward(const torch::Tensor& tokens);

  const std::vector<std::shared_ptr<distributed_utils::Block>>& layers() const { return layers_; }

 private:
  torch::nn::Embedding embedding_;
  torch::Tensor positions_;  ///< [sequence, width]
  std::vector<std::shared_ptr<distributed_utils::Block>> layers_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear head_;
};

}  // namespace gpt
