#include "operators/products.hpp"

#include "devices.hpp"

namespace tasks::operators {
namespace {

class NarrowLinearTest : public OnDevice {};
WORLDSIZE_ON_DEVICES(NarrowLinearTest);

TEST_P(NarrowLinearTest, IsTorchsOfTheCopies) {
  const auto input = torch::randn({3, 7, 16});
  const auto weight = torch::randn({24, 16});
  const auto bias = torch::randn({24});
  const auto scale = torch::randn({3, 7, 24});
  // The same roundings of what is multiplied, and none after.
  const auto rounded = [](const torch::Tensor& tensor) {
    return tensor.to(torch::kBFloat16).to(torch::kDouble).requires_grad_();
  };
  const std::vector<torch::Tensor> exact{rounded(input), rounded(weight), rounded(bias)};
  const auto wanted = at::linear(exact[0], exact[1], exact[2]);
  wanted.backward(scale.to(torch::kBFloat16).to(torch::kDouble));

  NarrowCopies copies(torch::kBFloat16);
  const std::vector<torch::Tensor> leaves{leaf(input, torch::kFloat), leaf(weight, torch::kFloat),
                                          leaf(bias, torch::kFloat)};
  const auto output = narrow_linear(leaves[0], leaves[1], leaves[2], copies);
  output.backward(scale.to(GetParam(), torch::kBFloat16));
  EXPECT_EQ(output.dtype(), torch::kBFloat16);
  EXPECT_LE(relative_error(output.detach(), wanted.detach()), 4e-3);
  EXPECT_LE(relative_error(leaves[0].grad(), exact[0].grad()), 4e-3);
  EXPECT_LE(relative_error(leaves[1].grad(), exact[1].grad()), 1e-6);
  EXPECT_LE(relative_error(leaves[2].grad(), exact[2].grad()), 1e-6);
}

}  // namespace
}  // namespace tasks::operators
