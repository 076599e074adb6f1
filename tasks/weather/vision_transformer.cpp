#include "vision_transformer.hpp"

#include <ATen/Functions.h>
#include <torch/nn/init.h>

#include <optional>

#include "operators/products.hpp"
#include "operators/residual_norm.hpp"
#include "tasks/autocast.hpp"

namespace tasks::weather {
namespace {

namespace nn = torch::nn;

// torch::nn::Linear's own forward adds the bias in a second pass.
torch::Tensor linear(const nn::Linear& module, const torch::Tensor& input,
                     operators::NarrowCopies* copies = nullptr) {
  if (copies) return operators::narrow_linear(input, module->weight, module->bias, *copies);
  return at::linear(input, module->weight, module->bias);
}

// What several products take, converted once.
torch::Tensor operand_of(const torch::Tensor& tensor, const operators::NarrowCopies* copies) {
  return copies ? tensor.to(copies->type()) : operand(tensor);
}

// What goes from one part of the model to the next: the sum of the parts so far.
struct Stream {
  torch::Tensor sum;
  torch::Tensor added = {};  // the last part, which is not in it yet
};

// Takes the last part in and returns the norm of the sum.
torch::Tensor norm_of(Stream& stream, nn::LayerNorm& norm, bool fused) {
  if (!stream.added.defined()) {
    return fused ? operators::layer_norm(stream.sum, norm->weight, norm->bias, norm->options.eps())
                 : norm(stream.sum);
  }
  if (!fused) return norm(stream.sum = stream.sum + stream.added);
  auto next =
      operators::sum_norm(stream.sum, stream.added, norm->weight, norm->bias, norm->options.eps());
  stream.sum = next.sum;
  return next.normed;
}

nn::LayerNorm make_norm(int64_t size) {
  return nn::LayerNorm(nn::LayerNormOptions({size}).eps(1e-6));
}

class Attention : public nn::Module {
 public:
  explicit Attention(const VisionTransformerOptions& options)
      : copies_(options.copies),
        heads_(options.heads),
        queries_(register_module("q", nn::Linear(options.embedding, options.embedding))),
        keys_(register_module("k", nn::Linear(options.embedding, options.embedding))),
        values_(register_module("v", nn::Linear(options.embedding, options.embedding))),
        output_(register_module("proj", nn::Linear(options.embedding, options.embedding))) {}

  torch::Tensor forward(const torch::Tensor& input) {
    const auto taken = operand_of(input, copies_.get());
    const auto by_head = [&](const nn::Linear& module) {
      return linear(module, taken, copies_.get()).unflatten(2, {heads_, -1}).transpose(1, 2);
    };
    const auto attended =
        at::scaled_dot_product_attention(by_head(queries_), by_head(keys_), by_head(values_));
    return linear(output_, attended.transpose(1, 2).flatten(2), copies_.get());
  }

 private:
  std::shared_ptr<operators::NarrowCopies> copies_;
  int64_t heads_;
  nn::Linear queries_, keys_, values_, output_;
};

class Layer : public distributed_utils::Block {
 public:
  explicit Layer(const VisionTransformerOptions& options)
      : copies_(options.copies),
        fused_norm_(options.fused_norm),
        norm1_(register_module("norm1", make_norm(options.embedding))),
        attention_(register_module("attn", std::make_shared<Attention>(options))),
        norm2_(register_module("norm2", make_norm(options.embedding))),
        inner_(register_module("fc1", nn::Linear(options.embedding, 4 * options.embedding))),
        outer_(register_module("fc2", nn::Linear(4 * options.embedding, options.embedding))) {}

  torch::Tensor forward(const torch::Tensor& input) override {
    Stream stream{input};
    take(stream);
    return stream.sum + stream.added;
  }

  void take(Stream& stream) {
    stream.added = attention_->forward(norm_of(stream, norm1_, fused_norm_));
    const auto inner = linear(inner_, norm_of(stream, norm2_, fused_norm_), copies_.get());
    stream.added = linear(outer_, at::gelu(inner), copies_.get());
  }

 private:
  std::shared_ptr<operators::NarrowCopies> copies_;
  bool fused_norm_;
  nn::LayerNorm norm1_;
  std::shared_ptr<Attention> attention_;
  nn::LayerNorm norm2_;
  nn::Linear inner_, outer_;
};

// The tutorial cuts these normal numbers off at 2, a hundred deviations away: nothing is cut.
constexpr double kDeviation = 0.02;

void initialise(nn::Module& module) {
  const torch::NoGradGuard no_grad;
  if (auto* own = module.as<nn::Linear>()) {
    nn::init::normal_(own->weight, 0, kDeviation);
    if (own->bias.defined()) nn::init::zeros_(own->bias);
  }
}

}  // namespace

VisionTransformer::VisionTransformer(const VisionTransformerOptions& options)
    : options_(options),
      patches_(register_module(
          "patch_embed",
          nn::Conv2d(nn::Conv2dOptions(options.channels, options.embedding, options.patch)
                         .stride(options.patch)))),
      positions_(register_parameter(
          "pos_embed",
          at::randn({1, options.height / options.patch * (options.width / options.patch),
                     options.embedding}) *
              kDeviation)),
      blocks_(register_module("blocks", nn::ModuleList())),
      norm_(register_module("norm", make_norm(options.embedding))),
      head_(register_module(
          "head", nn::Linear(nn::LinearOptions(options.embedding,
                                               options.channels * options.patch * options.patch)
                                 .bias(false)))) {
  for (int64_t i = 0; i < options.layers; ++i) {
    blocks_->push_back(std::make_shared<Layer>(options));
  }
  apply(initialise);
}

std::vector<std::shared_ptr<distributed_utils::Block>> VisionTransformer::blocks() const {
  if (options_.fused_norm || options_.copies) {
    throw Error(
        "--fast: the parts norm and optimizer of the vision transformer take two tensors from "
        "layer "
        "to layer, or copies of all parameters. Fix: leave --fast out.");
  }
  std::vector<std::shared_ptr<distributed_utils::Block>> all;
  for (const auto& block : *blocks_) all.push_back(std::dynamic_pointer_cast<Layer>(block));
  return all;
}

// And through the norm behind them.
torch::Tensor VisionTransformer::through_blocks(torch::Tensor tokens) {
  if (!options_.fused_norm) {
    for (const auto& block : *blocks_) tokens = (*block->as<Layer>())(tokens);
    return norm_(tokens);
  }
  Stream stream{tokens};
  for (const auto& block : *blocks_) block->as<Layer>()->take(stream);
  return norm_of(stream, norm_, /*fused=*/true);
}

torch::Tensor VisionTransformer::compute(const Input& input) {
  const torch::Tensor& fields = input;
  const auto device = fields.device().type();
  // The blocks' products of copies need no autocast, and would only be slower under one.
  std::optional<Autocast> autocast(std::in_place, device, options_.products);
  // Contiguous: all that is added to the tokens takes on how they lie in memory.
  const auto tokens = patches_(fields).flatten(2).transpose(1, 2).contiguous() + positions_;
  if (options_.copies) autocast.reset();
  const auto last = through_blocks(tokens);
  if (!autocast) autocast.emplace(device, options_.products);
  const auto [p, rows] = std::pair(options_.patch, options_.height / options_.patch);
  // [batch, row, column, y, x, channel]: each token becomes its patch again.
  return linear(head_, last)
      .reshape({fields.size(0), rows, -1, p, p, options_.channels})
      .permute({0, 5, 1, 3, 2, 4})
      .reshape(fields.sizes());
}

}  // namespace tasks::weather
