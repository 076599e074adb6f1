// What modules keep alike on all ranks themselves, DistributedDataParallel leaves alone.
#include "distributed_utils/self_synchronized.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <torch/csrc/distributed/c10d/comm.hpp>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/setup.hpp"
#include "either_reducer.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::ElementsAre;
using torch::Tensor;

/// Its input, whose gradient is averaged over the ranks.
struct Averaged : torch::autograd::Function<Averaged> {
  static Tensor forward(torch::autograd::AutogradContext* /*context*/, const Tensor& input) {
    return input.clone();
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* /*context*/,
                                                 torch::autograd::variable_list gradients) {
    auto mean = gradients[0].clone();
    all_reduce(mean, ReduceOp::AVG);
    return {mean};
  }
};

/// input * own + common: the gradients of `own` are its own business, once there are ranks.
struct Scale : torch::nn::Module, SelfSynchronized {
  Tensor forward(const Tensor& input) {
    return input * (ranks > 1 ? Averaged::apply(own) : own) + (common.defined() ? common : input);
  }
  std::vector<Tensor> synchronize_over(const Group& group) override {
    ranks = group->getSize();
    return {own, constant};
  }
  void add_common() { common = register_parameter("common", torch::zeros({3})); }

  int ranks = 1;
  Tensor own = register_parameter("own", torch::full({3}, static_cast<float>(get_rank())));
  Tensor common;
  Tensor constant = register_buffer("constant", torch::full({}, static_cast<float>(get_rank())));
  Tensor changing = register_buffer("changing", torch::zeros({}));
};

/// As a part of something greater.
struct Net : torch::nn::Module {
  explicit Net(bool with_common) {
    if (with_common) scale->add_common();
  }
  Tensor forward(const Tensor& input) { return scale->forward(input); }
  std::shared_ptr<Scale> scale = register_module("scale", std::make_shared<Scale>());
};

Tensor input_of(int rank) { return torch::full({3}, static_cast<float>(rank + 1)); }

class SelfSynchronizedWith : public EitherReducer {};
INSTANTIATE_TEST_SUITE_P(Reducers, SelfSynchronizedWith, kEitherReducer, NameOfReducer());

TEST_P(SelfSynchronizedWith, GradientsAreLeftAlone) {
  ranks::run(3, [] {
    const auto world = setup();
    const auto net = std::make_shared<Net>(true);
    const auto model = DistributedDataParallel(net, either());
    EXPECT_TRUE(net->scale->own.equal(torch::zeros({3}))) << "begins as on rank 0";
    int64_t sent = 0;
    model->register_comm_hook([&](const Group& group, c10d::GradBucket& bucket) {
      sent += bucket.getBuffer().numel();
      std::vector<Tensor> tensors{bucket.getBufferRef().div_(group->getSize())};
      return group->allreduce(tensors)->getFuture();
    });
    for (int step = 0; step < 3; ++step) {
      model->zero_grad();
      (model->forward(input_of(world.rank)) * input_of(world.rank)).sum().backward();
      EXPECT_TRUE(net->scale->own.grad().allclose(torch::full({3}, (1 + 4 + 9) / 3.0F)));
      EXPECT_TRUE(net->scale->common.grad().allclose(torch::full({3}, 2.0F)));
    }
    EXPECT_EQ(sent, 3 * 3);
  });
}

TEST_P(SelfSynchronizedWith, BuffersAreLeftAlone) {
  ranks::run(2, [] {
    const auto world = setup();
    for (const bool with_common : {false, true}) {  // false: nothing else has a gradient
      const auto net = std::make_shared<Net>(with_common);
      const auto model = DistributedDataParallel(net, either());
      EXPECT_EQ(net->scale->constant.item<float>(), 0) << "begins as on rank 0";
      for (const auto& buffer : net->buffers()) buffer.fill_(5 + world.rank);
      model->forward(input_of(world.rank)).sum().backward();
      EXPECT_EQ(net->scale->constant.item<float>(), 5 + world.rank);
      EXPECT_EQ(net->scale->changing.item<float>(), 5);
      EXPECT_TRUE(net->scale->own.grad().allclose(torch::full({3}, 1.5F)));
    }
  });
}

// So that a run that averages all of them can take the buckets of one that does not.
TEST_P(SelfSynchronizedWith, BucketsNameAllParameters) {
  ranks::run(2, [] {
    const auto world = setup();
    const auto net = std::make_shared<Net>(true);
    const auto alone = new_group({0});
    if (alone) {
      const auto model =
          DistributedDataParallel(net, either({.group = *alone, .bucket_indices = {{0}, {1}}}));
      EXPECT_EQ(net->scale->ranks, 1) << "there is nobody to average with";
      EXPECT_THAT(model->bucket_indices(), ElementsAre(ElementsAre(0), ElementsAre(1)));
    }
    for (const std::vector<std::vector<size_t>>& given :
         {std::vector<std::vector<size_t>>{}, {{1, 0}}, {{0}, {1}}}) {
      const auto model = DistributedDataParallel(net, either({.bucket_indices = given}));
      for (int step = 0; step < 3; ++step) {
        EXPECT_THAT(model->bucket_indices(), ElementsAre(ElementsAre(1), ElementsAre(0)));
        model->forward(input_of(world.rank)).sum().backward();
      }
      EXPECT_THAT(model->settle_buckets(), ElementsAre(ElementsAre(1), ElementsAre(0)));
    }
  });
}

TEST_P(SelfSynchronizedWith, MayBeAllThereIs) {
  ranks::run(2, [] {
    setup();
    const auto model = DistributedDataParallel(std::make_shared<Net>(false), either());
    EXPECT_THAT(model->bucket_indices(), ElementsAre(ElementsAre(0)));
    EXPECT_THAT(model->settle_buckets(), ElementsAre(ElementsAre(0)));
  });
}

}  // namespace
}  // namespace distributed_utils
