#pragma once
/// A vision transformer (Dosovitskiy et al. 2020, https://arxiv.org/abs/2010.11929) from fields to
/// fields, as in the tutorial "Deep Learning at Scale" of NERSC
/// (https://github.com/NERSC/sc24-dl-tutorial, networks/vit.py): layer norms before attention and
/// perceptron, learned positions, no class token, and a linear map from each token back to its
/// patch.
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include "operators/narrow_copies.hpp"
#include "tasks/task.hpp"

namespace tasks::weather {

struct VisionTransformerOptions {
  int64_t channels = 0;
  int64_t height = 0, width = 0;  ///< of the grid; multiples of patch
  int64_t patch = 0;              ///< a side of a square one, which is a token
  int64_t embedding = 0;          ///< a token's length, a multiple of heads
  int64_t heads = 0;
  int64_t layers = 0;
  Products products = Products::as_stored;  ///< bf16 or fp16: as under Python's autocast
  /// Given: the blocks multiply these copies of the parameters, without autocast.
  std::shared_ptr<operators::NarrowCopies> copies = nullptr;
  bool fused_norm = false;  ///< layer norms of operators/residual_norm.hpp
};

/// Input: [batch, channels, height, width]; returns the same shape, of the parameters' type or
/// the products'.
class VisionTransformer : public Model {
 public:
  explicit VisionTransformer(const VisionTransformerOptions& options);

  /// The layers, which the tutorial calls blocks.
  std::vector<std::shared_ptr<distributed_utils::Block>> blocks() const override;

 private:
  torch::Tensor compute(const Input& input) override;
  torch::Tensor through_blocks(torch::Tensor tokens);

  VisionTransformerOptions options_;
  torch::nn::Conv2d patches_;
  torch::Tensor positions_;  ///< [1, tokens, embedding]
  torch::nn::ModuleList blocks_;
  torch::nn::LayerNorm norm_;
  torch::nn::Linear head_;
};

}  // namespace tasks::weather
