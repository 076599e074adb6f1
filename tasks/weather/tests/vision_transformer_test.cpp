#include "vision_transformer.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>

#include "measures.hpp"
#include "oracle.hpp"
#include "tasks/autocast.hpp"

namespace tasks::weather {
namespace {

torch::Tensor sines(at::IntArrayRef shape, double phase) {
  const auto count = c10::multiply_integers(shape);
  return (torch::arange(count, torch::kDouble) * 0.7 + phase).sin().view(shape);
}

// Python's lists of numbers, by name.
torch::Tensor numbers(const nlohmann::json& list) {
  return torch::tensor(list.get<std::vector<double>>(), torch::kDouble);
}

double difference(const torch::Tensor& ours, const torch::Tensor& theirs) {
  return ((ours.flatten() - theirs).abs().max() / theirs.abs().max().clamp_min(1e-3))
      .item<double>();
}

// By the names that the twin gives its parameters.
std::map<std::string, torch::Tensor> parameters_of(const torch::nn::Module& model) {
  std::map<std::string, torch::Tensor> all;
  for (const auto& item : model.named_parameters()) all.emplace(item.key(), item.value());
  return all;
}

TEST(VisionTransformer, AgreesWithPythons) {
  const auto python = oracle::json("../../../tasks/weather/tests/twin.py");
  if (!python) GTEST_SKIP() << oracle::kMissing;
  VisionTransformer model({.channels = 3,
                           .height = 8,
                           .width = 12,
                           .patch = 4,
                           .embedding = 12,
                           .heads = 3,
                           .layers = 2});
  model.to(torch::kDouble);
  const auto parameters = parameters_of(model);
  {
    const torch::NoGradGuard no_grad;
    for (auto [name, parameter] : parameters) {
      parameter.copy_(0.3 * sines(parameter.sizes(), double(name.size())));
    }
  }
  const auto target = sines({2, 3, 8, 12}, 2);
  const auto output = model.forward(sines({2, 3, 8, 12}, 1));
  EXPECT_LT(difference(output, numbers((*python)["output"])), 1e-14);
  const auto loss = relative_errors(output, target).mean();
  EXPECT_NEAR(loss.item<double>(), (*python)["loss"].get<double>(), 1e-14);
  loss.backward();
  EXPECT_EQ((*python)["gradients"].size(), parameters.size());
  for (const auto& [name, parameter] : parameters) {
    const auto& theirs = (*python)["gradients"].at(name);
    EXPECT_LT(difference(parameter.grad(), numbers(theirs)), 1e-12) << name;
  }
  EXPECT_LT(difference(weighted_square_errors(output, target), numbers((*python)["squares"])),
            1e-13);
}

TEST(VisionTransformer, HasTheTutorialsParameters) {
  const VisionTransformer model({.channels = 20,
                                 .height = 360,
                                 .width = 720,
                                 .patch = 8,
                                 .embedding = 384,
                                 .heads = 8,
                                 .layers = 12});
  int64_t count = 0;
  for (const auto& parameter : model.parameters()) count += parameter.numel();
  EXPECT_EQ(count, 23'832'960);
}

TEST(VisionTransformer, BeginsWithSmallNormalNumbers) {
  torch::manual_seed(0);
  const VisionTransformer model({.channels = 4,
                                 .height = 16,
                                 .width = 16,
                                 .patch = 4,
                                 .embedding = 64,
                                 .heads = 4,
                                 .layers = 1});
  for (const auto& [name, parameter] : parameters_of(model)) {
    if (name == "pos_embed" || name == "head.weight" || name == "blocks.0.fc1.weight") {
      EXPECT_NEAR(parameter.std().item<double>(), 0.02, 0.002) << name;
    }
    if (name == "blocks.0.fc1.bias") {
      EXPECT_EQ(parameter.abs().max().item<double>(), 0);
    }
  }
}

TEST(VisionTransformer, ComputesInBf16OnRequest) {
  VisionTransformer model({.channels = 2,
                           .height = 4,
                           .width = 8,
                           .patch = 2,
                           .embedding = 8,
                           .heads = 2,
                           .layers = 1,
                           .products = Products::bf16});
  const auto output = model.forward(torch::randn({3, 2, 4, 8}));
  EXPECT_EQ(output.sizes(), (std::vector<int64_t>{3, 2, 4, 8}));
  EXPECT_EQ(output.dtype(), torch::kBFloat16);
}

// --fast computes the same: in fp32 but for the order of sums, in bf16 but for its roundings.
TEST(VisionTransformer, ItsFastPartsChangeRoundingsAlone) {
  const auto run = [](Products products, bool fast) {
    torch::manual_seed(0);
    const auto narrow = fast && are_narrow(products);
    VisionTransformer model(
        {.channels = 3,
         .height = 8,
         .width = 12,
         .patch = 4,
         .embedding = 12,
         .heads = 3,
         .layers = 2,
         .products = products,
         .copies = narrow ? std::make_shared<operators::NarrowCopies>(torch::kBFloat16) : nullptr,
         .fused_norm = fast});
    const auto output = model.forward(sines({2, 3, 8, 12}, 1).to(torch::kFloat)).to(torch::kFloat);
    output.square().sum().backward();
    std::vector<torch::Tensor> all{output.detach()};
    for (const auto& parameter : model.parameters()) all.push_back(parameter.grad());
    return all;
  };
  const auto exact = run(Products::as_stored, false);
  for (const auto products : {Products::as_stored, Products::bf16}) {
    const auto fast = run(products, true);
    for (size_t i = 0; i < exact.size(); ++i) {
      EXPECT_LT((fast[i] - exact[i]).norm().item<double>(),
                (products == Products::bf16 ? 2e-2 : 1e-5) * exact[i].norm().item<double>() + 1e-6)
          << i;
    }
  }
}

TEST(VisionTransformer, CallsItsBlocksOneAfterTheOther) {
  VisionTransformerOptions options{
      .channels = 2, .height = 4, .width = 8, .patch = 4, .embedding = 6, .heads = 3, .layers = 3};
  VisionTransformer model(options);
  std::vector<torch::Tensor> inputs, outputs;
  for (const auto& block : model.blocks()) {
    block->register_forward_input_hook([&](torch::Tensor tensor) {
      inputs.push_back(tensor);
      return tensor;
    });
    block->register_forward_hook([&](torch::Tensor tensor) {
      outputs.push_back(tensor);
      return tensor;
    });
  }
  model.forward(sines({1, 2, 4, 8}, 0).to(torch::kFloat));
  ASSERT_EQ(outputs.size(), 3U);
  for (size_t i = 1; i < outputs.size(); ++i) EXPECT_TRUE(torch::equal(inputs[i], outputs[i - 1]));
  options.fused_norm = true;
  EXPECT_THROW((void)VisionTransformer(options).blocks(), Error);
}

}  // namespace
}  // namespace tasks::weather
