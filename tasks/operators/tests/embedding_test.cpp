#include "operators/embedding.hpp"

#include "devices.hpp"

namespace tasks::operators {
namespace {

class EmbeddingTest : public OnDevice {
 protected:
  torch::Tensor gradient(const torch::Tensor& indices, int64_t words, const torch::Tensor& scale) {
    const auto weight = leaf(torch::ones({words, scale.size(-1)}), torch::kFloat);
    operators::embedding(weight, indices.to(GetParam())).backward(scale.to(GetParam()));
    return weight.grad();
  }
};
WORLDSIZE_ON_DEVICES(EmbeddingTest);

TEST_P(EmbeddingTest, LooksUp) {
  const auto weight = leaf(torch::randn({9, 4}), torch::kFloat);
  const auto indices = torch::tensor({{1, 8}, {8, 0}}, torch::kLong).to(GetParam());
  EXPECT_TRUE(torch::equal(operators::embedding(weight, indices), at::embedding(weight, indices)));
}

TEST_P(EmbeddingTest, AddsUpGradientsByWord) {
  for (const int64_t width : {1, 5, 128, 300}) {
    for (const int64_t words : {2, 50, 70000}) {
      const auto indices = torch::randint(words, {37, 32}, torch::kLong);
      const auto scale = torch::randn({37, 32, width});
      const auto wanted =
          at::embedding_dense_backward(scale.to(torch::kDouble), indices, words, -1, false);
      const auto result = gradient(indices, words, scale);
      EXPECT_LE(relative_error(result, wanted), 3e-6) << width << " " << words;
      EXPECT_TRUE(torch::equal(result, gradient(indices, words, scale)));
    }
  }
}

TEST_P(EmbeddingTest, TakesNoWordsAndMoreThanTheKernelDoes) {
  EXPECT_EQ(
      gradient(torch::zeros({0}, torch::kLong), 5, torch::zeros({0, 3})).abs().sum().item<float>(),
      0);
  const auto indices = torch::randint(100, {20000}, torch::kLong);
  const auto result = gradient(indices, 100, torch::ones({20000, 2}));
  const auto counts = indices.bincount({}, 100).to(torch::kFloat);
  EXPECT_TRUE(torch::equal(result.to(torch::kCPU).select(1, 0), counts));
}

}  // namespace
}  // namespace tasks::operators
