#include "gpt.hpp"

#include <torch/torch.h>

#include <string>

namespace gpt {
namespace {

class Layer : public distributed_utils::Block {
 public:
  explicit Layer(const Shape& shape)
      : heads_(shape.heads),
        norm1_(register_module("norm1", norm(shape))),
        norm2_(register_module("norm2", norm(shape))),
        projections_(
            register_module("projections", torch::nn::Linear(shape.width, 3 * shape.width))),
        output_(register_module("output", torch::nn::Linear(shape.width, shape.width))),
        linear1_(register_module("linear1", torch::nn::Linear(shape.width, shape.inner))),
        linear2_(register_module("linear2", torch::nn::Linear(shape.inner, shape.width))) {}

  torch::Tensor forward(const torch::Tensor& input) override {
    const auto x = input + output_(attention(projections_(norm1_(input))));
    return x + linear2_(torch::gelu(linear1_(norm2_(x))));
  }

 private:
  static torch::nn::LayerNorm norm(const Shape& shape) {
    return torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.width}));
  }

  // projected: [batch, sequence, 3 * width].
  torch::Tensor attention(const torch::Tensor& projected) const {
    const int64_t batch = projected.size(0), sequence = projected.size(1);
    const auto parts =
        projected.view({batch, sequence, 3, heads_, -1}).permute({2, 0, 3, 1, 4}).unbind(0);
    const auto attended =
        at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, /*is_causal=*/true);
    return attended.transpose(1, 2).reshape({batch, sequence, -1});
  }

  int64_t heads_;
  torch::nn::LayerNorm norm1_, norm2_;
  torch::nn::Linear projections_, output_, linear1_, linear2_;
};

}  // namespace

Model::Model(const Shape& shape)
    : embedding_(register_module("embedding", torch::nn::Embedding(shape.vocabulary, shape.width))),
      positions_(register_parameter("positions", torch::zeros({shape.sequence, shape.width}))),
      norm_(nullptr),
      head_(nullptr) {
  for (int64_t i = 0; i < shape.layers; ++i) {
    layers_.push_back(
        register_module("layers_" + std::to_string(i), std::make_shared<Layer>(shape)));
  }
  norm_ = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({shape.width})));
  head_ = register_module(
      "head",
      torch::nn::Linear(torch::nn::LinearOptions(shape.width, shape.vocabulary).bias(false)));
}

torch::Tensor Model::forward(const torch::Tensor& tokens) {
  auto x = embedding_(tokens) + positions_;
  for (const auto& layer : layers_) x = (*layer)(x);
  return head_(norm_(x));
}

}  // namespace gpt
