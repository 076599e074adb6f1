// How gradients travel, and where DistributedDataParallel leaves them.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "either_reducer.hpp"
#include "ranks.hpp"
#include "seeded_net.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

/// Its first parameter is laid out by columns.
torch::nn::Sequential column_net() {
  auto net = seeded_net();
  auto weight = net->parameters()[0];
  weight.set_data(weight.detach().t().contiguous().t());
  return net;
}

Tensor mean_square(const Tensor& output) { return output.square().mean(); }

/// Of 3 and 1, and of 2 and 0 each alone.
const std::vector<std::vector<size_t>> kMostlyAlone = {{3, 1}, {2}, {0}};

/// The gradients after each of three steps.
std::vector<Tensor> gradients_of_steps(const World& world, DistributedDataParallelOptions options,
                                       const CommHook& hook = {}) {
  auto net = column_net();
  net->to(world.device);
  options.bucket_indices = kMostlyAlone;
  const auto model = DistributedDataParallel(net.ptr(), options);
  if (hook) model->register_comm_hook(hook);
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  std::vector<Tensor> seen;
  for (int step = 0; step < 3; ++step) {
    model->zero_grad();
    mean_square(model->forward(rows_of(world.rank, step).to(world.device))).backward();
    for (const auto& parameter : net->parameters()) seen.push_back(parameter.grad().clone());
    optimizer.step();
  }
  return seen;
}

/// What c10d does without a hook.
c10::intrusive_ptr<c10::ivalue::Future> average_of(const Group& group, c10d::GradBucket& bucket) {
  std::vector<Tensor> tensors{bucket.getBufferRef().mul_(1.0 / group->getSize())};
  return group->allreduce(tensors)->getFuture();
}

void expect_same_bits(const World& world) {
  const auto expected = gradients_of_steps(world, {.find_unused_parameters = true});
  const std::vector<std::pair<const char*, std::vector<Tensor>>> others = {
      {"in place", gradients_of_steps(world, {})},
      {"plain", gradients_of_steps(world, {.reducer = ReducerKind::plain})},
      {"a hook on the plain one",
       gradients_of_steps(world, {.reducer = ReducerKind::plain}, average_of)},
      {"views", gradients_of_steps(world, {.gradient_as_bucket_view = true})},
      {"a hook", gradients_of_steps(world, {}, average_of)},
      {"a hook on views",
       gradients_of_steps(world, {.gradient_as_bucket_view = true}, average_of)}};
  for (const auto& [name, gradients] : others) {
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_TRUE(gradients[i].equal(expected[i])) << name << ", gradient " << i;
      EXPECT_EQ(gradients[i].strides(), expected[i].strides()) << name << ", gradient " << i;
    }
  }
}

class GradientsOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, GradientsOf, testing::Values(1, 2, 3));

TEST_P(GradientsOf, AreTheSameBitsHoweverTheyTravel) {
  ranks::run(GetParam(), [] { expect_same_bits(setup({.device = c10::Device(c10::kCPU)})); });
}

TEST(Gradients, AreTheSameBitsHoweverTheyTravelBetweenGpus) {
  if (ranks::gpus() < 2) GTEST_SKIP() << "two GPUs are needed";
  ranks::run(2, [] {
    expect_same_bits(setup({.device = c10::Device(c10::kCUDA)}));
    destroy_process_group();
  });
}

TEST(Gradients, AreAveragedWhereTheyAre) {
  ranks::run(2, [] {
    const auto world = setup();
    auto net = column_net();
    const auto model = DistributedDataParallel(net.ptr(), {.bucket_indices = kMostlyAlone});
    std::vector<const void*> sent;
    model->register_comm_hook([&](const Group& group, c10d::GradBucket& bucket) {
      sent.push_back(bucket.getBuffer().const_data_ptr());
      return average_of(group, bucket);
    });
    torch::optim::SGD optimizer(model->parameters(), 0.1);
    for (int step = 0; step < 3; ++step) {
      sent.clear();
      optimizer.zero_grad(step == 0);  // of LibTorch, which refuses views
      mean_square(model->forward(rows_of(world.rank, step))).backward();
      const auto at = [&](size_t index) {
        return net->parameters()[index].grad().const_data_ptr();
      };
      EXPECT_THAT(sent, testing::ElementsAre(at(3), at(2), at(0)));
    }
  });
}

class GradientsWith : public EitherReducer {};
INSTANTIATE_TEST_SUITE_P(Reducers, GradientsWith, kEitherReducer, NameOfReducer());

TEST_P(GradientsWith, OfAnEarlierStepAreNotOverwritten) {
  ranks::run(2, [] {
    const auto world = setup();
    auto net = column_net();
    const auto model = DistributedDataParallel(net.ptr(), either());
    std::vector<Tensor> held, copies;
    for (int step = 0; step < 3; ++step) {
      model->zero_grad();
      mean_square(model->forward(rows_of(world.rank, step))).backward();
      for (const auto& parameter : net->parameters()) {
        held.push_back(parameter.grad());
        copies.push_back(parameter.grad().clone());
      }
    }
    for (size_t i = 0; i < held.size(); ++i) EXPECT_TRUE(held[i].equal(copies[i])) << i;
  });
}

// Wrapping makes buckets, and so does the second forward(): what is there stays.
TEST_P(GradientsWith, StayWhereTheyAreUntilBackward) {
  ranks::run(2, [] {
    const auto world = setup();
    auto net = column_net();
    mean_square(net->forward(rows_of(0, 0))).backward();
    const auto gradients = [&] {
      std::vector<Tensor> all;
      for (const auto& parameter : net->parameters()) all.push_back(parameter.grad());
      return all;
    };
    auto before = gradients();
    const auto model = DistributedDataParallel(net.ptr(), either({.bucket_cap_bytes = 400}));
    for (int step = 0; step < 3; ++step) {
      const auto output = model->forward(rows_of(world.rank, step));
      const auto after = gradients();
      for (size_t i = 0; i < before.size(); ++i) EXPECT_TRUE(after[i].is_same(before[i])) << i;
      mean_square(output).backward();
      before = gradients();
    }
  });
}

TEST_P(GradientsWith, WithAGraphOfTheirOwnAreAveraged) {
  ranks::run(2, [] {
    const auto world = setup();
    auto linear = torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false));
    const auto model = DistributedDataParallel(linear.ptr(), either());
    const auto input = torch::full({1, 1}, static_cast<float>(world.rank + 1));
    model->forward(input).square().sum().backward({}, std::nullopt, /*create_graph=*/true);
    const float weight = linear->weight.item<float>();
    EXPECT_FLOAT_EQ(linear->weight.grad().item<float>(), 2 * weight * (1 + 4) / 2);
    linear->weight.mutable_grad().reset();  // it and its graph hold each other
  });
}

/// input * weight, whose gradient only rank 0 gives the weight.
struct FirstRankOnly : torch::autograd::Function<FirstRankOnly> {
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& input,
                        const Tensor& weight, int64_t rank) {
    context->save_for_backward({input});
    context->saved_data["rank"] = rank;
    return input * weight;
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto input = context->get_saved_variables()[0];
    const bool first = context->saved_data["rank"].toInt() == 0;
    return {Tensor(), first ? gradients[0] * input : Tensor(), Tensor()};
  }
};

TEST_P(GradientsWith, ThatOneRankHasNotCountAsZero) {
  struct Partial : torch::nn::Module {
    Tensor forward(const Tensor& input, int64_t rank) {
      return FirstRankOnly::apply(input, weight, rank);
    }
    Tensor weight = register_parameter("weight", torch::ones({2}));
  };
  ranks::run(2, [] {
    const auto world = setup();
    const auto model = DistributedDataParallel(std::make_shared<Partial>(), either());
    model->forward(torch::full({2}, 6.0F), world.rank).sum().backward();
    EXPECT_TRUE(model->module()->weight.grad().equal(torch::full({2}, 3.0F)));
  });
}

TEST_P(GradientsWith, ThatAreSparseAreRefused) {
  ranks::run(2, [] {
    setup();
    const torch::nn::Sequential net(
        torch::nn::Embedding(torch::nn::EmbeddingOptions(9, 4).sparse(true)));
    const auto model = DistributedDataParallel(net.ptr(), either());
    const auto loss = model->forward(torch::zeros({3}, torch::kLong)).sum();
    if (reducer_kind() == ReducerKind::plain) {
      EXPECT_THROW(loss.backward(), c10::Error);  // in c10d's words
      return;
    }
    EXPECT_THAT([&] { loss.backward(); }, ThrowsMessage<Error>(HasSubstr("of 0.weight is sparse")));
  });
}

}  // namespace
}  // namespace distributed_utils
