#include "operators/narrow_copies.hpp"

#include "devices.hpp"

namespace tasks::operators {
namespace {

TEST(NarrowCopies, FollowTheirParameters) {
  const torch::NoGradGuard no_grad;
  NarrowCopies copies(torch::kBFloat16);
  auto parameter = torch::randn({3, 5});
  EXPECT_FALSE(copies.existing(parameter).defined());
  const auto copy = copies.of(parameter);
  EXPECT_TRUE(torch::equal(copy, parameter.to(torch::kBFloat16)));
  EXPECT_TRUE(copies.of(parameter).is_same(copy));
  parameter.mul_(3);
  EXPECT_FALSE(torch::equal(copy, parameter.to(torch::kBFloat16)));
  EXPECT_TRUE(torch::equal(copies.of(parameter), parameter.to(torch::kBFloat16)));
  parameter.set_data(torch::randn({2, 2}));
  EXPECT_FALSE(copies.existing(parameter).defined());
  EXPECT_TRUE(torch::equal(copies.of(parameter), parameter.to(torch::kBFloat16)));
}

TEST(NarrowCopies, AreNotMadeAnewWithoutNeed) {
  NarrowCopies copies(torch::kHalf);
  const auto parameter = torch::randn({4});
  copies.of(parameter).zero_();  // as who changes the parameter without torch's noticing
  EXPECT_EQ(copies.of(parameter).abs().sum().item<float>(), 0);
}

}  // namespace
}  // namespace tasks::operators
