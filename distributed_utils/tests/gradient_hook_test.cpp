#include "distributed_utils/gradient_hook.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "distributed_utils/error.hpp"

namespace distributed_utils {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using torch::Tensor;

TEST(GradientHook, RunsOnceTheGradientIsAddedUpAndWhileOthersAreMissing) {
  const auto first = torch::full({2}, 2.0, torch::requires_grad());
  const auto last = torch::full({2}, 3.0, torch::requires_grad());
  std::vector<double> seen;
  register_post_accumulate_grad_hook(last, [&](const Tensor& parameter) {
    EXPECT_TRUE(parameter.is_same(last));
    seen.push_back(last.grad()[0].item<double>());
    if (seen.size() == 1) EXPECT_FALSE(first.grad().defined()) << "backward() still computes it";
  });
  // last is used twice, and its gradient is there when both uses are added up.
  const auto loss = [&] { return (first.exp() * last + last).sum(); };
  loss().backward();
  loss().backward();
  const double once = std::exp(2.0) + 1;
  EXPECT_THAT(seen,
              ElementsAre(testing::DoubleNear(once, 1e-5), testing::DoubleNear(2 * once, 1e-5)));
}

TEST(GradientHook, SeveralRunInTheirOrder) {
  const auto parameter = torch::ones({1}, torch::requires_grad());
  std::string order;
  for (const char name : {'a', 'b', 'c'}) {
    register_post_accumulate_grad_hook(parameter, [&order, name](const Tensor&) { order += name; });
  }
  parameter.square().backward();
  EXPECT_EQ(order, "abc");
}

TEST(GradientHook, MayChangeTheGradient) {
  const auto parameter = torch::ones({1}, torch::requires_grad());
  register_post_accumulate_grad_hook(parameter,
                                     [](const Tensor& seen) { seen.mutable_grad().mul_(10); });
  parameter.square().backward();
  EXPECT_EQ(parameter.grad().item<double>(), 20);
}

TEST(GradientHook, WhatItThrowsComesOutOfBackward) {
  const auto parameter = torch::ones({1}, torch::requires_grad());
  register_post_accumulate_grad_hook(
      parameter, [](const Tensor&) { throw std::runtime_error("the network is gone"); });
  EXPECT_THROW(parameter.square().backward(), std::runtime_error);
}

std::string refusal_of(const Tensor& tensor, std::function<void(const Tensor&)> hook) {
  try {
    register_post_accumulate_grad_hook(tensor, std::move(hook));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(GradientHook, NeedsALeafWithAGradientAndAHook) {
  const auto hook = [](const Tensor&) {};
  const auto parameter = torch::ones({1}, torch::requires_grad());
  EXPECT_THAT(refusal_of(parameter * 2, hook), HasSubstr("register the hook on a parameter"));
  EXPECT_THAT(refusal_of(torch::ones({1}), hook), HasSubstr("not a leaf"));
  EXPECT_THAT(refusal_of({}, hook), HasSubstr("not a leaf"));
  EXPECT_THAT(refusal_of(parameter, nullptr), HasSubstr("the hook is empty"));
}

}  // namespace
}  // namespace distributed_utils
