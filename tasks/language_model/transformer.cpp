#include "transformer.hpp"

#include <ATen/Functions.h>

#include <cmath>

#include "operators/attention.hpp"
#include "operators/embedding.hpp"
#include "operators/products.hpp"
#include "operators/relu_dropout.hpp"
#include "operators/residual_norm.hpp"
#include "tasks/autocast.hpp"

namespace tasks::language_model {
namespace {

// torch::nn::Linear's own forward adds the bias in a second pass.
torch::Tensor linear(const torch::nn::Linear& module, const torch::Tensor& input,
                     operators::NarrowCopies* copies) {
  if (copies) return operators::narrow_linear(input, module->weight, module->bias, *copies);
  return at::linear(input, module->weight, module->bias);
}

class Attention : public torch::nn::Module {
 public:
  explicit Attention(const TransformerOptions& options)
      : copies_(options.copies),
        fused_(options.fused_attention),
        heads_(options.heads),
        dropout_(options.dropout),
        projections_(
            register_module("projections", torch::nn::Linear(options.width, 3 * options.width))),
        output_(register_module("output", torch::nn::Linear(options.width, options.width))) {}

  torch::Tensor forward(const torch::Tensor& input) {
    const auto attention = fused_ ? operators::fused_causal_attention : operators::causal_attention;
    const auto attended = attention(linear(projections_, input, copies_.get()), heads_,
                                    is_training() ? dropout_ : 0.0);
    return linear(output_, attended, copies_.get());
  }

 private:
  std::shared_ptr<operators::NarrowCopies> copies_;
  bool fused_;
  int64_t heads_;
  double dropout_;
  torch::nn::Linear projections_;  // queries, keys and values in one product
  torch::nn::Linear output_;
};

class Layer : public distributed_utils::Block {
 public:
  explicit Layer(const TransformerOptions& options)
      : copies_(options.copies),
        fused_norm_(options.fused_norm),
        fused_relu_(options.fused_relu),
        dropout_(options.dropout),
        attention_(register_module("attention", std::make_shared<Attention>(options))),
        norm1_(register_module("norm1", torch::nn::LayerNorm(std::vector{options.width}))),
        linear1_(
            register_module("linear1", torch::nn::Linear(options.width, options.feed_forward))),
        linear2_(
            register_module("linear2", torch::nn::Linear(options.feed_forward, options.width))),
        norm2_(register_module("norm2", torch::nn::LayerNorm(std::vector{options.width}))) {}

  torch::Tensor forward(const torch::Tensor& input) override {
    return forward_both({input, input}).output;
  }

  // Both in and out: once for the residual sum, once for products, maybe narrower.
  operators::Normed forward_both(const operators::Normed& input) {
    const auto attended = add_and_norm(norm1_, input.output, attention_->forward(input.narrow));
    return add_and_norm(norm2_, attended.output, feed_forward(attended.narrow));
  }

 private:
  torch::Tensor feed_forward(const torch::Tensor& input) {
    const auto inner = linear(linear1_, input, copies_.get());
    const auto active = fused_relu_ ? operators::relu_dropout(inner, is_training() ? dropout_ : 0.0)
                                    : drop(at::relu(inner));
    return linear(linear2_, active, copies_.get());
  }

  operators::Normed add_and_norm(torch::nn::LayerNorm& norm, const torch::Tensor& residual,
                                 const torch::Tensor& added) const {
    if (!fused_norm_) {
      const auto normed = norm(residual + drop(added));
      return {normed, normed};
    }
    return operators::residual_norm(residual, added, norm->weight, norm->bias,
                                    is_training() ? dropout_ : 0.0, norm->options.eps());
  }

  torch::Tensor drop(const torch::Tensor& input) const {
    return at::dropout(input, dropout_, is_training());
  }

  std::shared_ptr<operators::NarrowCopies> copies_;
  bool fused_norm_, fused_relu_;
  double dropout_;
  std::shared_ptr<Attention> attention_;
  torch::nn::LayerNorm norm1_;
  torch::nn::Linear linear1_, linear2_;
  torch::nn::LayerNorm norm2_;
};

}  // namespace

torch::Tensor sinusoidal_positions(int64_t positions, int64_t width) {
  const auto position = at::arange(positions, at::kDouble).unsqueeze(1);
  const auto pair = at::arange(0, width, 2, at::kDouble);
  const auto angle = position * at::exp(pair * (-std::log(10000.0) / double(width)));
  // Even columns are sines, odd ones cosines; an odd width lacks the last cosine.
  const auto both = at::stack({angle.sin(), angle.cos()}, -1).flatten(1);
  return both.narrow(1, 0, width).to(at::kFloat).contiguous();
}

Transformer::Transformer(const TransformerOptions& options)
    : autocast_(options.copies ? Products::as_stored : options.products),
      unsorted_embedding_(options.unsorted_embedding),
      most_words_(options.most_words),
      fused_norm_(options.fused_norm),
      without_decoder_(options.without_decoder),
      copies_(options.copies),
      embedding_(
          register_module("embedding", torch::nn::Embedding(options.vocabulary, options.width))),
      positions_(register_buffer("positions",
                                 sinusoidal_positions(options.sequence_length, options.width))),
      layers_(register_module("layers", torch::nn::ModuleList())),
      norm_(register_module("norm", torch::nn::LayerNorm(std::vector{options.width}))),
      decoder_(register_module("decoder", torch::nn::Linear(options.width, options.vocabulary))) {
  for (int64_t i = 0; i < options.layers; ++i) layers_->push_back(std::make_shared<Layer>(options));
}

std::vector<at::Tensor> Transformer::synchronize_over(const distributed_utils::Group& group) {
  std::vector<at::Tensor> own{positions_};  // which never change
  if (unsorted_embedding_ && most_words_ > 0) {
    auto rows = c10::make_intrusive<operators::EmbeddingRows>(group, most_words_);
    if (rows->pays_for(embedding_->weight)) {
      embedding_rows_ = std::move(rows);
      own.push_back(embedding_->weight);
    }
  }
  return own;
}

std::vector<std::shared_ptr<distributed_utils::Block>> Transformer::blocks() const {
  if (fused_norm_ || unsorted_embedding_ || without_decoder_ || copies_) {
    throw Error(
        "--fast: the parts embedding, loss, norm and optimizer of the language model need all of "
        "its "
        "parameters at once. Fix: --fast=attention,relu.");
  }
  std::vector<std::shared_ptr<distributed_utils::Block>> all;
  for (const auto& layer : *layers_) all.push_back(std::dynamic_pointer_cast<Layer>(layer));
  return all;
}

torch::Tensor Transformer::through_layers(torch::Tensor hidden) {
  if (!fused_norm_) {
    for (const auto& layer : *layers_) hidden = (*layer->as<Layer>())(hidden);
    return hidden;
  }
  operators::Normed both{hidden, hidden};
  for (const auto& layer : *layers_) both = layer->as<Layer>()->forward_both(both);
  return both.output;
}

torch::Tensor Transformer::compute(const Input& input) {
  const torch::Tensor& indices = input;
  const Autocast autocast(indices.device().type(), autocast_);
  const auto words = unsorted_embedding_
                         ? operators::embedding(embedding_->weight, indices, embedding_rows_)
                         : embedding_(indices);
  const auto first = words + positions_.narrow(0, 0, indices.size(1));
  const auto hidden = through_layers(first);
  const auto last =
      fused_norm_ ? operators::layer_norm(hidden, norm_->weight, norm_->bias, norm_->options.eps())
                  : norm_(hidden);
  return without_decoder_ ? last : linear(decoder_, last, copies_.get());
}

}  // namespace tasks::language_model
