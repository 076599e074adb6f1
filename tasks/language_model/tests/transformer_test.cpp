#include "transformer.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

namespace tasks::language_model {
namespace {

const TransformerOptions kSmall{.vocabulary = 11,
                                .sequence_length = 7,
                                .width = 12,
                                .heads = 3,
                                .layers = 2,
                                .feed_forward = 20,
                                .dropout = 0.5};

std::shared_ptr<Transformer> make(torch::Dtype type = torch::kDouble) {
  torch::manual_seed(0);
  auto model = std::make_shared<Transformer>(kSmall);
  model->to(type);
  model->eval();
  return model;
}

TEST(Transformer, GivesLogitsOfEveryWordAtEveryPosition) {
  const auto logits = make()->forward(torch::zeros({2, 7}, torch::kLong));
  EXPECT_EQ(logits.sizes(), (std::vector<int64_t>{2, 7, 11}));
  EXPECT_EQ(logits.dtype(), torch::kDouble);
  EXPECT_EQ(make(torch::kFloat)->forward(torch::zeros({1, 3}, torch::kLong)).dtype(),
            torch::kFloat);
}

TEST(Transformer, NeverSeesALaterWord) {
  for (const bool training : {false, true}) {
    const auto model = make();
    model->train(training);
    const auto input = torch::randint(11, {3, 7}, torch::kLong);
    torch::manual_seed(1);  // the same dropout every time
    const auto logits = model->forward(input);
    for (int64_t t = 0; t < 7; ++t) {
      auto changed = input.clone();
      changed.select(1, t) = (changed.select(1, t) + 1) % 11;
      torch::manual_seed(1);
      const auto others = model->forward(changed);
      const auto before = (others - logits).abs().amax({0, 2});
      if (t > 0) {
        EXPECT_LT(before.narrow(0, 0, t).max().item<double>(), 1e-12) << t;
      }
      // And it does see the word itself, from its own position on.
      EXPECT_GT(before.narrow(0, t, 7 - t).min().item<double>(), 1e-6) << t;
    }
  }
}

TEST(Transformer, TellsPositionsApart) {
  const auto logits = make()->forward(torch::zeros({1, 7}, torch::kLong))[0];
  for (int64_t t = 1; t < 7; ++t) EXPECT_FALSE(torch::allclose(logits[t], logits[t - 1])) << t;
}

TEST(Transformer, DropsOutOnlyInTraining) {
  const auto model = make();
  const auto input = torch::ones({1, 7}, torch::kLong);
  EXPECT_TRUE(torch::equal(model->forward(input), model->forward(input)));
  model->train();
  EXPECT_FALSE(torch::equal(model->forward(input), model->forward(input)));
}

TEST(Transformer, IsTheFormulaOfThePaper) {
  const auto model = make();
  const auto input = torch::randint(11, {2, 5}, torch::kLong);
  const auto p = model->named_parameters();
  const auto mm = [&](const std::string& name, const torch::Tensor& x) {
    return torch::matmul(x, p[name + ".weight"].t()) + p[name + ".bias"];
  };
  const auto norm = [&](const std::string& name, const torch::Tensor& x) {
    const auto centred = x - x.mean(-1, true);
    return centred / (centred.square().mean(-1, true) + 1e-5).sqrt() * p[name + ".weight"] +
           p[name + ".bias"];
  };
  auto x = p["embedding.weight"].index_select(0, input.flatten()).view({2, 5, 12}) +
           sinusoidal_positions(7, 12).narrow(0, 0, 5);
  for (const std::string layer : {"layers.0", "layers.1"}) {
    const auto heads = mm(layer + ".attention.projections", x).view({2, 5, 3, 3, 4});
    const auto pick = [&](int64_t which) { return heads.select(2, which).transpose(1, 2); };
    auto weights = torch::matmul(pick(0), pick(1).transpose(-1, -2)) / 2.0;  // sqrt(4)
    const auto future = torch::ones({5, 5}, torch::kBool).triu(1);
    weights = weights.masked_fill(future, -INFINITY).softmax(-1);
    const auto mixed = torch::matmul(weights, pick(2)).transpose(1, 2).reshape({2, 5, 12});
    x = norm(layer + ".norm1", x + mm(layer + ".attention.output", mixed));
    x = norm(layer + ".norm2", x + mm(layer + ".linear2", mm(layer + ".linear1", x).relu()));
  }
  EXPECT_TRUE(torch::allclose(model->forward(input), mm("decoder", norm("norm", x)), 1e-10, 1e-10));
}

TEST(Positions, AreSinesAndCosines) {
  const auto table = sinusoidal_positions(50, 6);
  EXPECT_EQ(table.sizes(), (std::vector<int64_t>{50, 6}));
  EXPECT_NEAR(table[3][0].item<double>(), std::sin(3.0), 1e-6);
  EXPECT_NEAR(table[3][1].item<double>(), std::cos(3.0), 1e-6);
  EXPECT_NEAR(table[40][4].item<double>(), std::sin(40 / std::pow(10000, 4.0 / 6)), 1e-6);
  EXPECT_EQ(sinusoidal_positions(5, 3).size(1), 3);
}

TEST(Positions, AreSavedButNotLearned) {
  const auto model = make();
  EXPECT_TRUE(model->named_buffers().contains("positions"));
  EXPECT_FALSE(model->named_parameters().contains("positions"));
}

TEST(Transformer, CallsItsBlocksOneAfterTheOther) {
  const auto model = make();
  const auto input = torch::randint(11, {2, 7}, torch::kLong);
  const auto before = model->forward(input);
  std::vector<torch::Tensor> inputs, outputs;
  for (const auto& block : model->blocks()) {
    block->register_forward_input_hook([&](torch::Tensor tensor) {
      inputs.push_back(tensor);
      return tensor;
    });
    block->register_forward_hook([&](torch::Tensor tensor) {
      outputs.push_back(tensor);
      return tensor;
    });
  }
  EXPECT_TRUE(torch::equal(model->forward(input), before));
  ASSERT_EQ(outputs.size(), 2U);
  ASSERT_EQ(inputs.size(), 2U);
  EXPECT_TRUE(torch::equal(inputs[1], outputs[0]));
  outputs[0].zero_();
  EXPECT_FALSE(torch::equal(outputs[1], outputs[0]));
}

TEST(Transformer, HasNoBlocksWherePartsTakeMoreThanATensor) {
  auto options = kSmall;
  options.fused_norm = true;
  const auto model = std::make_shared<Transformer>(options);
  EXPECT_THROW((void)model->blocks(), Error);
}

}  // namespace
}  // namespace tasks::language_model
