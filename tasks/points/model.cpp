#include "model.hpp"

#include <torch/torch.h>

#include "data.hpp"

namespace tasks::points {

namespace {

constexpr int64_t kWidth = 12;

}  // namespace

Heights::Heights()
    : kinds_(register_module("kinds", torch::nn::Embedding(kKinds, kWidth))),
      hidden_(register_module("hidden", torch::nn::Linear(2, kWidth))),
      norm_(register_module("norm", torch::nn::BatchNorm1d(kWidth))),
      output_(register_module("output", torch::nn::Linear(kWidth, 1))) {}

torch::Tensor Heights::compute(const Input& input) {
  const auto hidden = hidden_(input[0]) * kinds_(input[1]);
  return output_(torch::tanh(norm_(hidden)));
}

}  // namespace tasks::points
