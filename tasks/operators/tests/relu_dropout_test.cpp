// Against torch's own operators.
#include "operators/relu_dropout.hpp"

#include "devices.hpp"

namespace tasks::operators {
namespace {

class ReluDropoutTest : public OnDevice {
 protected:
  struct Results {
    torch::Tensor input, output, gradient;
  };

  /// gradient: of `scale` times the output.
  Results ours(const torch::Tensor& values, const torch::Tensor& scale, torch::Dtype type,
               double dropout) const {
    const auto input = leaf(values, type);
    const auto output = relu_dropout(input, dropout);
    output.backward(scale.to(GetParam(), type));
    return {input.detach(), output.detach(), input.grad()};
  }
};
WORLDSIZE_ON_DEVICES(ReluDropoutTest);

TEST_P(ReluDropoutTest, WithoutDropoutIsTorchsToTheLastBit) {
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kDouble}) {
    for (const int64_t size : {1, 7, 8, 24, 4000, 70001}) {
      SCOPED_TRACE(testing::Message() << type << " " << size);
      const auto scale = torch::randn({size});
      const auto [input, output, gradient] = ours(torch::randn({size}), scale, type, 0);
      const auto positive = input.gt(0);
      EXPECT_TRUE(torch::equal(output, input * positive));
      EXPECT_TRUE(torch::equal(gradient, scale.to(GetParam(), type) * positive));
    }
  }
}

TEST_P(ReluDropoutTest, DropsTheSameForwardAndBackward) {
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    for (const double dropout : {0.1, 0.5}) {
      SCOPED_TRACE(testing::Message() << type << " " << dropout);
      constexpr int64_t kSize = 80000;
      const auto values = torch::randn({kSize}).abs() + 0.1, scale = torch::randn({kSize});
      const auto [input, output, gradient] = ours(values, scale, type, dropout);
      const auto kept = output.ne(0).to(torch::kFloat);
      const double tolerance = type == torch::kFloat ? 1e-6 : 4e-3;
      EXPECT_LE(relative_error(output, input.to(torch::kFloat) * kept / (1 - dropout)), tolerance);
      EXPECT_LE(relative_error(gradient, scale.to(GetParam(), type) * kept / (1 - dropout)),
                tolerance);
      // Five standard deviations.
      EXPECT_NEAR(kept.mean().item<double>(), 1 - dropout,
                  5 * std::sqrt(dropout * (1 - dropout) / kSize));
      EXPECT_FALSE(torch::equal(ours(values, scale, type, dropout).output, output));
    }
  }
}

TEST_P(ReluDropoutTest, KeepsWhatIsNotANumber) {
  auto values = torch::ones({16});
  values[3] = NAN;
  const auto output = ours(values, torch::ones({16}), torch::kFloat, 0).output;
  EXPECT_TRUE(output[3].isnan().item<bool>());
  EXPECT_EQ(output.isnan().sum().item<int64_t>(), 1);
}

TEST_P(ReluDropoutTest, TakesNothing) {
  EXPECT_EQ(ours(torch::empty({0, 8}), torch::empty({0, 8}), torch::kFloat, 0.5).gradient.numel(),
            0);
}

}  // namespace
}  // namespace tasks::operators
