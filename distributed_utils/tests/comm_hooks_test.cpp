// Communication hooks of DistributedDataParallel.
#include "distributed_utils/comm_hooks.hpp"

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

/// Small buckets, so that there are several.
DistributedDataParallelOptions small_buckets(bool views) {
  return {.bucket_cap_bytes = 400, .first_bucket_bytes = 100, .gradient_as_bucket_view = views};
}

/// One after the other.
Tensor gradients_of(const torch::nn::Module& model) {
  std::vector<Tensor> flat;
  for (const auto& parameter : model.parameters()) flat.push_back(parameter.grad().flatten());
  return torch::cat(flat);
}

/// The gradients of one rank's rows alone.
Tensor gradients_alone(int rank, int step) {
  auto net = seeded_net();
  net->forward(rows_of(rank, step)).square().mean().backward();
  return gradients_of(*net);
}

/// The weights stay as they are; buckets are rebuilt after the first step.
void expect_averages(const World& world, bool views) {
  const auto net = seeded_net();
  const auto model = DistributedDataParallel(net.ptr(), either(small_buckets(views)));
  model->register_comm_hook(bf16_compress_hook);
  for (int step = 0; step < 3; ++step) {
    model->zero_grad();
    model->forward(rows_of(world.rank, step)).square().mean().backward();
    const Tensor averaged = gradients_of(*model);
    Tensor exact = torch::zeros_like(averaged, torch::kDouble), sizes = exact.clone();
    for (int rank = 0; rank < world.world_size; ++rank) {
      const Tensor part = gradients_alone(rank, step).to(torch::kDouble) / world.world_size;
      exact += part;
      sizes += part.abs();
    }
    // Parts are rounded once, partial sums, of which there are fewer than ranks, each once.
    const double bound = std::ldexp(world.world_size, -8);
    EXPECT_TRUE(((averaged - exact).abs() <= bound * sizes + 1e-30).all().item<bool>());
    if (world.world_size == 1) {
      EXPECT_TRUE(averaged.equal(gradients_alone(0, step)));  // nothing travels
    } else {
      EXPECT_TRUE(averaged.equal(averaged.to(torch::kBFloat16).to(torch::kFloat)));
      EXPECT_GT((averaged - exact).abs().max().item<double>(), 1e-5);
    }
    const Tensor firsts = averaged.clone();
    broadcast(firsts, 0);
    EXPECT_TRUE(averaged.equal(firsts)) << "ranks differ";
  }
}

class CommHooksOf : public EitherReducerOnRanks {};
INSTANTIATE_TEST_SUITE_P(Worlds, CommHooksOf,
                         testing::Combine(testing::Values(1, 2, 3), kEitherReducer),
                         NameOfRanksAndReducer());

TEST_P(CommHooksOf, Bf16AveragesWithinItsPrecision) {
  ranks::run(world_size(), [] {
    const auto world = setup();
    for (const bool views : {false, true}) expect_averages(world, views);
  });
}

class CommHooksWith : public EitherReducer {};
INSTANTIATE_TEST_SUITE_P(Reducers, CommHooksWith, kEitherReducer, NameOfReducer());

TEST_P(CommHooksWith, AnyHookSeesEveryBucketOnceAndDecides) {
  ranks::run(2, [] {
    const auto world = setup();
    const auto net = seeded_net();
    const auto model = DistributedDataParallel(net.ptr(), either(small_buckets(false)));
    size_t elements = 0, calls = 0;
    model->register_comm_hook([&](const Group& group, c10d::GradBucket& bucket) {
      elements += static_cast<size_t>(bucket.getBuffer().numel());
      ++calls;
      std::vector<Tensor> tensors{bucket.getBufferRef()};
      return group->allreduce(tensors)->getFuture();  // a sum
    });
    model->forward(rows_of(world.rank, 0)).square().mean().backward();
    const Tensor sum = gradients_alone(0, 0) + gradients_alone(1, 0);
    EXPECT_TRUE(torch::allclose(gradients_of(*model), sum, 1e-5, 1e-7));
    EXPECT_EQ(elements, static_cast<size_t>(sum.numel()));
    EXPECT_EQ(calls, model->bucket_indices().size());
    EXPECT_GT(calls, 1U);
  });
}

TEST_P(CommHooksWith, AreRegisteredOnceAndBeforeTraining) {
  ranks::run(2, [] {
    setup();
    const auto net = seeded_net();
    const auto model = DistributedDataParallel(net.ptr(), either());
    EXPECT_THAT([&] { model->register_comm_hook({}); }, ThrowsMessage<Error>(HasSubstr("empty")));
    model->register_comm_hook(bf16_compress_hook);
    EXPECT_THAT([&] { model->register_comm_hook(bf16_compress_hook); },
                ThrowsMessage<Error>(HasSubstr("already has a hook")));
    const auto other = seeded_net();
    const auto trained = DistributedDataParallel(other.ptr(), either());
    trained->forward(rows_of(0, 0)).sum().backward();
    EXPECT_THAT([&] { trained->register_comm_hook(bf16_compress_hook); },
                ThrowsMessage<Error>(HasSubstr("before the first forward")));
  });
}

}  // namespace
}  // namespace distributed_utils
