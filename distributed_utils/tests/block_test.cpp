// Blocks and their hooks.
#include "distributed_utils/block.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "distributed_utils/error.hpp"

namespace distributed_utils {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

/// Its input times its weight, which is 3; says when it runs.
struct Times : Block {
  Tensor forward(const Tensor& input) override {
    events.push_back("forward");
    return input * weight;
  }
  void note(const std::string& event) { events.push_back(event); }

  Tensor weight = register_parameter("weight", torch::full({}, 3.0));
  std::vector<std::string> events;
};

TEST(Block, HooksRunAroundForwardInTheOrderOfTheirRegistration) {
  Times block;
  block.register_forward_hook([&](Tensor output) {
    block.note("after 1");
    return output;
  });
  block.register_forward_input_hook([&](Tensor input) {
    block.note("input");
    return input;
  });
  block.register_forward_pre_hook([&] { block.note("before 1"); });
  block.register_forward_pre_hook([&] { block.note("before 2"); });
  block.register_forward_hook([&](Tensor output) {
    block.note("after 2");
    return output;
  });
  EXPECT_EQ(block(torch::full({}, 2.0)).item<float>(), 6);
  EXPECT_THAT(block.events,
              ElementsAre("before 1", "before 2", "input", "forward", "after 1", "after 2"));
}

TEST(Block, AHookMayReplaceTheOutput) {
  Times block;
  block.register_forward_hook([](const Tensor& output) { return output + 1; });
  block.register_forward_hook([](const Tensor& output) { return output * 10; });
  const auto output = block(torch::full({}, 2.0));
  EXPECT_EQ(output.item<float>(), 70);
  output.backward();  // through the hooks
  EXPECT_EQ(block.weight.grad().item<float>(), 20);
}

TEST(Block, AHookMayReplaceTheInput) {
  Times block;
  block.register_forward_input_hook([](const Tensor& input) { return input + 1; });
  block.register_forward_input_hook([](const Tensor& input) { return input * 10; });
  EXPECT_EQ(block(torch::full({}, 2.0)).item<float>(), 90);
}

TEST(Block, APreHookMayChangeWhatForwardSees) {
  Times block;
  block.register_forward_pre_hook([&] {
    const torch::NoGradGuard no_grad;
    block.weight.fill_(5);
  });
  EXPECT_EQ(block(torch::full({}, 2.0)).item<float>(), 10);
}

TEST(Block, ForwardItselfPassesTheHooksBy) {
  Times block;
  block.register_forward_pre_hook([&] { block.note("before"); });
  block.register_forward_hook([](const Tensor& output) { return output + 1; });
  EXPECT_EQ(block.forward(torch::full({}, 2.0)).item<float>(), 6);
  EXPECT_THAT(block.events, ElementsAre("forward"));
}

TEST(Block, AHookThatRegistersAnotherDoesSoForTheNextCall) {
  Times block;
  block.register_forward_pre_hook([&] {
    for (int i = 0; i < 10; ++i) block.register_forward_pre_hook([&] { block.note("new"); });
  });
  block(torch::ones({}));
  EXPECT_THAT(block.events, ElementsAre("forward"));
  block(torch::ones({}));
  EXPECT_EQ(block.events.size(), 12U);  // ten of them, and forward again
}

TEST(Block, OfAModelIsFoundByItsNameAndParameters) {
  struct Model : Block {
    Tensor forward(const Tensor& input) override { return (*second)((*first)(input)); }
    std::shared_ptr<Times> first = register_module("first", std::make_shared<Times>());
    std::shared_ptr<Times> second = register_module("second", std::make_shared<Times>());
  };
  Model model;
  EXPECT_EQ(model(torch::ones({})).item<float>(), 9);
  EXPECT_THAT(model.named_parameters().keys(), ElementsAre("first.weight", "second.weight"));
}

TEST(Block, AnEmptyHookIsAnError) {
  Times block;
  EXPECT_THAT([&] { block.register_forward_pre_hook({}); },
              ThrowsMessage<Error>(HasSubstr("empty")));
  EXPECT_THAT([&] { block.register_forward_input_hook({}); },
              ThrowsMessage<Error>(HasSubstr("empty")));
  EXPECT_THAT([&] { block.register_forward_hook({}); }, ThrowsMessage<Error>(HasSubstr("empty")));
}

}  // namespace
}  // namespace distributed_utils
