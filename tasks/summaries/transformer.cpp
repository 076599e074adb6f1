#include "transformer.hpp"

#include <ATen/Functions.h>
#include <torch/nn/modules/container/modulelist.h>

#include <cmath>
#include <limits>

#include "tasks/autocast.hpp"

namespace tasks::summaries {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

}  // namespace

class FeedForward : public torch::nn::Module {
 public:
  explicit FeedForward(const TransformerOptions& options)
      : dropout_(options.dropout),
        wi_(register_module("wi", linear(options.width, options.feed_forward, options))),
        wo_(register_module("wo", linear(options.feed_forward, options.width, options))) {
    if (!options.t5) return;
    const torch::NoGradGuard no_grad;
    wi_->weight.normal_(0, 1 / std::sqrt(double(options.width)));
    wo_->weight.normal_(0, 1 / std::sqrt(double(options.feed_forward)));
  }

  torch::Tensor forward(const torch::Tensor& input) {
    return wo_(at::dropout(at::relu(wi_(input)), dropout_, is_training()));
  }

 private:
  static torch::nn::Linear linear(int64_t from, int64_t to, const TransformerOptions& options) {
    return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(!options.t5));
  }

  double dropout_;
  torch::nn::Linear wi_, wo_;
};

// Something and the norm before it.
template <class Part>
class Layer : public torch::nn::Module {
 public:
  Layer(const std::string& name, std::shared_ptr<Part> made, const TransformerOptions& options)
      : part(register_module(name, std::move(made))),
        norm(register_module("layer_norm", std::make_shared<Norm>(options))) {}

  std::shared_ptr<Part> part;
  std::shared_ptr<Norm> norm;
};

class Block : public torch::nn::Module {
 public:
  Block(const TransformerOptions& options, bool decodes, bool first)
      : dropout_(options.dropout),
        self_(std::make_shared<Layer<Attention>>(
            "SelfAttention", std::make_shared<Attention>(options, options.t5 && first), options)),
        feed_(std::make_shared<Layer<FeedForward>>(
            "DenseReluDense", std::make_shared<FeedForward>(options), options)) {
    const auto layers = register_module("layer", torch::nn::ModuleList());
    layers->push_back(self_);
    if (decodes) {
      cross_ = std::make_shared<Layer<Attention>>(
          "EncDecAttention", std::make_shared<Attention>(options, false), options);
      layers->push_back(cross_);
    }
    layers->push_back(feed_);
  }

  torch::Tensor forward(torch::Tensor hidden, const torch::Tensor& mask,
                        const torch::Tensor& memory, const torch::Tensor& memory_mask) {
    const auto normed = self_->norm->forward(hidden);
    hidden = hidden + drop(self_->part->forward(normed, normed, mask));
    if (cross_) {
      hidden =
          hidden + drop(cross_->part->forward(cross_->norm->forward(hidden), memory, memory_mask));
    }
    return hidden + drop(feed_->part->forward(feed_->norm->forward(hidden)));
  }

  Attention& attention() { return *self_->part; }

 private:
  torch::Tensor drop(const torch::Tensor& input) const {
    return at::dropout(input, dropout_, is_training());
  }

  double dropout_;
  std::shared_ptr<Layer<Attention>> self_, cross_;
  std::shared_ptr<Layer<FeedForward>> feed_;
};

class Stack : public torch::nn::Module {
 public:
  Stack(const TransformerOptions& options, bool decodes)
      : decodes_(decodes), relative_(options.t5), dropout_(options.dropout) {
    const auto all = register_module("block", torch::nn::ModuleList());
    const auto layers = decodes ? options.decoder_layers : options.encoder_layers;
    for (int64_t i = 0; i < layers; ++i) {
      blocks_.push_back(std::make_shared<Block>(options, decodes, i == 0));
      all->push_back(blocks_.back());
    }
    norm_ = register_module("final_layer_norm", std::make_shared<Norm>(options));
  }

  // memory_mask: of the documents' words, which an encoder attends to as well.
  torch::Tensor forward(const torch::Tensor& words, const torch::Tensor& memory,
                        const torch::Tensor& memory_mask) {
    const auto length = words.size(1);
    // Once for all layers. Otherwise each would convert them again.
    const auto taken = memory.defined() ? operand(memory) : memory,
               taken_mask = operand(memory_mask);
    auto mask = taken_mask;
    if (decodes_) mask = at::full({length, length}, kNever, taken_mask.options()).triu(1);
    if (relative_ && !blocks_.empty()) {
      mask = blocks_.front()->attention().position_bias(length, !decodes_) + mask;
    }
    auto hidden = at::dropout(words, dropout_, is_training());
    for (const auto& block : blocks_) hidden = block->forward(hidden, mask, taken, taken_mask);
    return at::dropout(norm_->forward(hidden), dropout_, is_training());
  }

 private:
  bool decodes_, relative_;
  double dropout_;
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<Norm> norm_;
};

torch::Tensor sinusoids(int64_t positions, int64_t width) {
  const auto position = at::arange(positions, at::kDouble).unsqueeze(1);
  const auto pair = at::arange(0, width, 2, at::kDouble);
  const auto angle = position * at::exp(pair * (-std::log(10000.0) / double(width)));
  const auto both = at::stack({angle.sin(), angle.cos()}, -1).flatten(1);
  return both.narrow(1, 0, width).to(torch::get_default_dtype()).contiguous();
}

EncoderDecoder::EncoderDecoder(const TransformerOptions& options)
    : options_(options),
      shared_(register_module("shared", torch::nn::Embedding(options.vocabulary, options.width))),
      encoder_(register_module("encoder", std::make_shared<Stack>(options, false))),
      decoder_(register_module("decoder", std::make_shared<Stack>(options, true))) {
  if (options.t5) return;  // whose embedding is as torch draws it: a deviation of 1
  positions_ = register_buffer("positions", sinusoids(options.longest, options.width));
  const torch::NoGradGuard no_grad;
  shared_->weight.mul_(1 / std::sqrt(double(options.width)));
}

std::vector<at::Tensor> EncoderDecoder::synchronize_over(
    const distributed_utils::Group& /*group*/) {
  if (!positions_.defined()) return {};
  return {positions_};  // which never change
}

// Words are embedded as large as they are told apart at the end, where the same weights make
// logits of what has about the size 1 in each place.
torch::Tensor EncoderDecoder::embed(const torch::Tensor& words) {
  const auto embedded = shared_(words);
  if (options_.t5) return embedded;
  return embedded * std::sqrt(double(options_.width)) + positions_.narrow(0, 0, words.size(1));
}

torch::Tensor EncoderDecoder::mask_of(const torch::Tensor& documents) const {
  const auto none = at::zeros({1}, shared_->weight.options());
  return none.expand(documents.sizes())
      .masked_fill(documents.eq(kPad), kNever)
      .unsqueeze(1)
      .unsqueeze(1);
}

torch::Tensor EncoderDecoder::encode(const torch::Tensor& documents) {
  const Autocast autocast(documents.device().type(), options_.products);
  return encoder_->forward(embed(documents), {}, mask_of(documents));
}

torch::Tensor EncoderDecoder::decode(const torch::Tensor& told, const torch::Tensor& encoded,
                                     const torch::Tensor& documents) {
  const Autocast autocast(documents.device().type(), options_.products);
  auto hidden = decoder_->forward(embed(told), encoded, mask_of(documents));
  if (options_.t5) hidden = hidden * (1 / std::sqrt(double(options_.width)));
  return at::linear(hidden, shared_->weight);
}

torch::Tensor EncoderDecoder::compute(const Input& input) {
  return decode(input[1], encode(input[0]), input[0]);
}

}  // namespace tasks::summaries
