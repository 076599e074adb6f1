#include "attention.hpp"

#include <ATen/Functions.h>

#include <cmath>

#include "tasks/autocast.hpp"

namespace tasks::summaries {
namespace {

constexpr int64_t kBuckets = 32, kFarthest = 128;

torch::nn::Linear projection(int64_t from, int64_t to, bool biased) {
  return torch::nn::Linear(torch::nn::LinearOptions(from, to).bias(biased));
}

// As T5's authors draw them (mesh-tensorflow; HF's T5PreTrainedModel._init_weights).
void draw(torch::nn::Linear& linear, double deviation) {
  const torch::NoGradGuard no_grad;
  linear->weight.normal_(0, deviation);
}

}  // namespace

Norm::Norm(const TransformerOptions& options)
    : weight_(register_parameter("weight", torch::ones({options.width}))) {
  if (!options.t5) bias_ = register_parameter("bias", torch::zeros({options.width}));
}

torch::Tensor Norm::forward(const torch::Tensor& input) const {
  constexpr double kEpsilon = 1e-6;
  if (bias_.defined()) {
    return at::layer_norm(input, weight_.sizes(), weight_, bias_, kEpsilon);
  }
  return at::rms_norm(input, weight_.sizes(), weight_, kEpsilon);
}

torch::Tensor relative_buckets(int64_t queries, int64_t keys, bool both_ways,
                               torch::Device device) {
  const auto whole = at::TensorOptions(torch::kLong).device(device);
  auto distance = at::arange(keys, whole).unsqueeze(0) - at::arange(queries, whole).unsqueeze(1);
  const int64_t buckets = both_ways ? kBuckets / 2 : kBuckets;
  auto bucket = at::zeros_like(distance);
  if (both_ways) {
    bucket = distance.gt(0).to(torch::kLong) * buckets;
    distance = distance.abs();
  } else {
    distance = (-distance).clamp_min(0);
  }
  // Half of the buckets hold one distance each, the others as much more each as logarithms say. In
  // fp32, because T5 learned with what fp32 rounds to.
  const int64_t exact = buckets / 2;
  const auto beyond = (distance.clamp_min(1).to(torch::kFloat) / double(exact)).log() /
                      std::log(double(kFarthest) / double(exact)) * double(buckets - exact);
  const auto far = (exact + beyond.to(torch::kLong)).clamp_max(buckets - 1);
  return bucket + at::where(distance.lt(exact), distance, far);
}

Attention::Attention(const TransformerOptions& options, bool relative)
    : heads_(options.heads),
      head_width_(options.head_width),
      dropout_(options.dropout),
      scaled_(!options.t5),
      q_(register_module("q", projection(options.width, heads_ * head_width_, !options.t5))),
      // A bias of keys would move all scores of a query alike, which softmax does not see.
      k_(register_module("k", projection(options.width, heads_ * head_width_, false))),
      v_(register_module("v", projection(options.width, heads_ * head_width_, !options.t5))),
      o_(register_module("o", projection(heads_ * head_width_, options.width, !options.t5))) {
  const auto root = [](int64_t size) { return 1 / std::sqrt(double(size)); };
  if (options.t5) {
    draw(q_, root(options.width * head_width_));
    draw(k_, root(options.width));
    draw(v_, root(options.width));
    draw(o_, root(heads_ * head_width_));
  }
  if (relative) {
    relative_ = register_module("relative_attention_bias", torch::nn::Embedding(kBuckets, heads_));
    const torch::NoGradGuard no_grad;
    relative_->weight.mul_(root(options.width));
  }
}

torch::Tensor Attention::split(const torch::Tensor& projected) const {
  return projected.unflatten(-1, {heads_, head_width_}).transpose(1, 2);
}

torch::Tensor Attention::forward(const torch::Tensor& queries, const torch::Tensor& memory,
                                 const torch::Tensor& mask) {
  const auto scale = scaled_ ? 1 / std::sqrt(double(head_width_)) : 1.0;
  const auto asking = operand(queries);
  const auto told = memory.is_same(queries) ? asking : operand(memory);
  const auto attended =
      at::scaled_dot_product_attention(split(q_(asking)), split(k_(told)), split(v_(told)), mask,
                                       is_training() ? dropout_ : 0.0, /*is_causal=*/false, scale);
  return o_(attended.transpose(1, 2).flatten(2));
}

torch::Tensor Attention::position_bias(int64_t length, bool both_ways) {
  const auto buckets = relative_buckets(length, length, both_ways, relative_->weight.device());
  // Fast kernels take a bias whose rows lie in memory one after the other.
  return operand(relative_(buckets)).permute({2, 0, 1}).contiguous().unsqueeze(0);
}

}  // namespace tasks::summaries
