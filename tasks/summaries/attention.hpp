#pragma once
/// The parts of an encoder-decoder, in two styles. Own: layer norms and biases as in Vaswani et al.
/// 2017 (https://arxiv.org/abs/1706.03762), before the products. T5 (Raffel et al. 2020,
/// https://arxiv.org/abs/1910.10683, section 2.1): norms without mean and shift, no biases, scores
/// that are not scaled, and positions as a bias of the scores.
#include <torch/nn/module.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <cstdint>

#include "tasks/options.hpp"

namespace tasks::summaries {

struct TransformerOptions {
  int64_t vocabulary = 0;
  int64_t width = 0;
  int64_t heads = 0;
  int64_t head_width = 0;  ///< width / heads, but for some T5
  int64_t feed_forward = 0;
  int64_t encoder_layers = 0, decoder_layers = 0;
  int64_t longest = 0;  ///< source or target; T5 needs none
  double dropout = 0;
  bool t5 = false;
  Products products = Products::as_stored;  ///< bf16 or fp16: as under Python's autocast
};

/// What divides by the root of the mean square (T5), after taking the mean away and before adding a
/// bias (own). Over the last dimension; epsilon 1e-6.
class Norm : public torch::nn::Module {
 public:
  explicit Norm(const TransformerOptions& options);
  torch::Tensor forward(const torch::Tensor& input) const;

 private:
  torch::Tensor weight_, bias_;  // bias_: own only
};

/// The bucket, below 32, of each distance from a query to a key, int64 [queries, keys]: near ones
/// have one each, farther ones share, from 128 on all of them. T5's section 2.1; in both directions
/// for an encoder, backwards only for a decoder.
torch::Tensor relative_buckets(int64_t queries, int64_t keys, bool both_ways, torch::Device device);

class Attention : public torch::nn::Module {
 public:
  /// relative: it has the bias by distance, which all layers of its stack share.
  Attention(const TransformerOptions& options, bool relative);

  /// queries [batch, q, width], memory [batch, k, width]; mask: added to the scores, broadcast to
  /// [batch, heads, q, k]. Returns [batch, q, width].
  torch::Tensor forward(const torch::Tensor& queries, const torch::Tensor& memory,
                        const torch::Tensor& mask);

  /// The bias by distance, [1, heads, length, length].
  torch::Tensor position_bias(int64_t length, bool both_ways);

 private:
  torch::Tensor split(const torch::Tensor& projected) const;

  int64_t heads_, head_width_;
  double dropout_;
  bool scaled_;
  torch::nn::Linear q_, k_, v_, o_;
  torch::nn::Embedding relative_{nullptr};
};

}  // namespace tasks::summaries
