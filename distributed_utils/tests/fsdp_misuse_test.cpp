// What FullyShardedDataParallel refuses, and in which words.
#include <gmock/gmock.h>

#include "distributed_utils/error.hpp"
#include "distributed_utils/fsdp.hpp"
#include "fsdp_net.hpp"
#include "ranks.hpp"

namespace distributed_utils::fsdp {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

/// An Error that says this, and how to fix it.
auto says(const std::string& what) {
  return ThrowsMessage<Error>(AllOf(HasSubstr(what), HasSubstr("Fix: ")));
}

auto wrapping(const FullyShardedDataParallelOptions& options,
              const std::shared_ptr<Net>& net = make_net()) {
  return [=] { FullyShardedDataParallel(net, options); };
}

TEST(FsdpMisuse, BeforeSetup) {
  EXPECT_THAT(wrapping({}), ThrowsMessage<Error>(HasSubstr("setup()")));
}

TEST(FsdpMisuse, OfOptions) {
  ranks::run(1, [] {
    setup();
    const auto net = make_net();
    const std::shared_ptr<Block> block = net->units[0];
    EXPECT_THAT(wrapping({.units = {nullptr}}, net), says("number 1 of the units is null"));
    EXPECT_THAT(wrapping({.units = {block, block}}, net), says("is there a second time"));
    EXPECT_THAT(wrapping({.units = make_net()->units}, net), says("not part of the module"));
    EXPECT_THAT(wrapping({.forward_prefetch = -1}), says("forward_prefetch -1"));
    EXPECT_THAT(wrapping({.mp_policy = {.param_dtype = torch::kLong}}), says("cannot be Long"));
  });
}

TEST(FsdpMisuse, OfParameters) {
  struct Odd : torch::nn::Module {
    explicit Odd(const Tensor& odd) {
      register_parameter("odd", odd);
      register_module("even", torch::nn::Linear(2, 2));
    }
  };
  ranks::run(1, [] {
    setup();
    const auto wrapping_odd = [](const Tensor& odd) {
      return [odd] { FullyShardedDataParallel(std::make_shared<Odd>(odd)); };
    };
    EXPECT_THAT(wrapping_odd(torch::ones({})), says("the parameter odd of shape []"));
    EXPECT_THAT(wrapping_odd(torch::ones({2}, torch::kDouble)),
                says("even.weight is Float on cpu, but odd of the same unit is Double on cpu"));
    EXPECT_THAT([] { FullyShardedDataParallel(torch::nn::Tanh().ptr()); },
                ThrowsMessage<Error>(HasSubstr("no parameters")));
  });
}

TEST(FsdpMisuse, OfAWrappedModel) {
  struct Opaque {
    Tensor tensor;
  };
  struct Strange : torch::nn::Module {
    Opaque forward(const Tensor& input) { return {input * weight}; }
    Tensor weight = register_parameter("weight", torch::ones({1}));
  };
  ranks::run(2, [] {
    const World world = setup();
    const auto net = make_net();
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    EXPECT_THAT([&] { model->to(torch::kFloat); }, says("before it is wrapped"));
    EXPECT_THAT([&] { model->to(world.device); }, says("before it is wrapped"));
    EXPECT_THAT(wrapping({}, net), ThrowsMessage<c10::Error>(HasSubstr("is sharded")));
    const auto strange = FullyShardedDataParallel(std::make_shared<Strange>());
    EXPECT_THAT([&] { strange->forward(torch::ones({1})); }, says("collect_tensors"));
  });
}

TEST(FsdpMisuse, ModelsThatDifferBetweenRanks) {
  ranks::run(2, [] {
    const World world = setup();
    EXPECT_ANY_THROW(wrapping({}, make_net({.hidden = 7 + world.rank}))());
  });
}

TEST(FsdpMisuse, SparseGradients) {
  ranks::run(2, [] {
    setup();
    const auto table = torch::nn::Embedding(torch::nn::EmbeddingOptions(4, 2).sparse(true));
    const auto model = FullyShardedDataParallel(table.ptr());
    EXPECT_THAT([&] { model->forward(torch::zeros({3}, torch::kLong)).sum().backward(); },
                says("the gradient of weight is sparse"));
  });
}

}  // namespace
}  // namespace distributed_utils::fsdp
