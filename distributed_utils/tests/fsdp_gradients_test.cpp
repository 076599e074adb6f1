// What FullyShardedDataParallel's gradients are: added up, averaged over replicas, rounded,
// clipped.
#include <gmock/gmock.h>

#include "distributed_utils/clip_grad_norm.hpp"
#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/fsdp.hpp"
#include "fsdp_net.hpp"
#include "ranks.hpp"

namespace distributed_utils::fsdp {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

bool has_gradients(const torch::nn::Module& model) {
  const auto parameters = model.parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Tensor& one) { return one.grad().defined(); });
}

/// Three backwards a round, the first two under no_sync() or not.
void add_up_beside_twin(const World& world, bool without_sync, const NetShape& shape,
                        const MixedPrecisionPolicy& policy) {
  const auto twin = make_net(shape);
  const auto net = make_net(shape);
  const auto model = FullyShardedDataParallel(net, {.units = net->units, .mp_policy = policy});
  for (int round = 0; round < 2; ++round) {
    model->zero_grad();
    twin->zero_grad();
    for (int step = 3 * round; step < 3 * round + 2; ++step) {
      const auto backward = [&] {
        loss_of(model->forward(own_rows(step, world.rank, world.world_size))).backward();
      };
      if (without_sync) {
        const auto guard = model->no_sync();
        backward();
        EXPECT_FALSE(has_gradients(*model)) << "was averaged already";
      } else {
        backward();
      }
      loss_of(twin->forward(global_rows(step, world.world_size))).backward();
    }
    const int last = 3 * round + 2;
    loss_of(model->forward(own_rows(last, world.rank, world.world_size))).backward();
    loss_of(twin->forward(global_rows(last, world.world_size))).backward();
    expect_parts_of(*model, *twin, kClose, "in round " + std::to_string(round));
  }
}

TEST(FsdpGradients, OfSeveralBackwardsAddUp) {
  ranks::run(3, [] {
    const World world = setup();
    for (const bool without_sync : {false, true}) {
      add_up_beside_twin(world, without_sync, {}, {});
      add_up_beside_twin(world, without_sync, {.frozen = true, .unused = true, .twice = true}, {});
    }
  });
}

TEST(FsdpGradients, AddedUpWithoutSyncTravelThoughTheNextForwardLeavesOutTheirUnit) {
  ranks::run(2, [] {
    const World world = setup();
    const auto twin = make_net();
    const auto net = make_net();
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    const auto step = [&](int number) {
      loss_of(model->forward(own_rows(number, world.rank, 2))).backward();
      loss_of(twin->forward(global_rows(number, 2))).backward();
    };
    {
      const auto no_sync = model->no_sync();
      step(0);
    }
    net->skips = twin->skips = true;
    step(1);
    expect_parts_of(*model, *twin, kClose, "after a forward without layer1");
  });
}

TEST(FsdpGradients, AddedUpWithoutSyncAreDroppedByZeroGrad) {
  ranks::run(2, [] {
    const World world = setup();
    const auto twin = make_net();
    const auto net = make_net();
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    {
      const auto no_sync = model->no_sync();
      loss_of(model->forward(own_rows(7, world.rank, 2))).backward();
    }
    model->zero_grad();
    loss_of(model->forward(own_rows(0, world.rank, 2))).backward();
    loss_of(twin->forward(global_rows(0, 2))).backward();
    expect_parts_of(*model, *twin, kClose, "after zero_grad");
    model->zero_grad(/*set_to_none=*/false);
    for (const auto& parameter : model->parameters()) {
      EXPECT_EQ(parameter.grad().count_nonzero().item<int64_t>(), 0);
    }
  });
}

TEST(FsdpGradients, AreAveragedOverReplicasOfTheShards) {
  ranks::run(4, [] {
    const World world = setup();
    // Ranks 0 and 1 share one replica of the model, ranks 2 and 3 the other.
    const auto low = new_group({0, 1}), high = new_group({2, 3});
    const auto even = new_group({0, 2}), odd = new_group({1, 3});
    const NetShape shape = {.tied = true, .unused = true, .hidden = 27001};
    const auto twin = make_net(shape);
    const auto net = make_net(shape, torch::kDouble, 5 + world.rank);
    const auto model = FullyShardedDataParallel(
        net,
        {.group = low ? *low : *high, .replicate_group = even ? *even : *odd, .units = net->units});
    net->shift.fill_(world.rank);  // a buffer: rank 0's counts
    torch::optim::SGD optimizer(each_once(model->parameters()), 0.01);
    torch::optim::SGD twin_optimizer(each_once(twin->parameters()), 0.01);
    for (int step = 0; step < 3; ++step) {
      model->zero_grad();
      twin->zero_grad();
      loss_of(model->forward(own_rows(step, world.rank, 4))).backward();
      loss_of(twin->forward(global_rows(step, 4))).backward();
      expect_parts_of(*model, *twin, 1e-10, "at step " + std::to_string(step));
      optimizer.step();
      twin_optimizer.step();
    }
    EXPECT_EQ(net->shift[0].item<double>(), 0);
    for (const auto& piece : model->placements()) {
      if (piece.name != "scale") continue;
      EXPECT_EQ(piece.tensor.size(0), world.rank % 2 == 0 ? 1 : 0);
    }
  });
}

TEST(FsdpGradients, AreAveragedOverReplicasOfWholeModels) {
  ranks::run(2, [] {
    const World world = setup();
    const auto own = new_group({0}), other = new_group({1});
    const auto twin = make_net();
    const auto net = make_net({}, torch::kDouble, 5 + world.rank);
    const auto model = FullyShardedDataParallel(
        net, {.group = own ? *own : *other, .replicate_group = world_group(), .units = net->units});
    torch::optim::SGD optimizer(model->parameters(), 0.1), oracle(twin->parameters(), 0.1);
    for (int step = 0; step < 3; ++step) {
      model->zero_grad();
      twin->zero_grad();
      loss_of(model->forward(own_rows(step, world.rank, 2))).backward();
      loss_of(twin->forward(global_rows(step, 2))).backward();
      expect_parts_of(*model, *twin, kClose, "at step " + std::to_string(step));
      optimizer.step();
      oracle.step();
    }
  });
}

/// A net that computes in bf16 with a master's values.
std::shared_ptr<Net> half_of(const Net& master) {
  auto half = make_net({}, torch::kFloat);
  const auto values = master.parameters();
  size_t i = 0;
  for (auto& parameter : half->parameters()) {
    parameter.set_data(values[i++].detach().to(torch::kBFloat16));
  }
  return half;
}

/// The mean over ranks of their bf16 gradients, in fp32.
void set_mean_gradients(Net& master, int step, int ranks) {
  std::vector<Tensor> sums;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto half = half_of(master);
    loss_of(half->forward(own_rows(step, rank, ranks).to(torch::kBFloat16))).backward();
    const auto parameters = half->parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto part = parameters[i].grad().to(torch::kFloat) / ranks;
      if (rank == 0) sums.push_back(part);
      if (rank != 0) sums[i].add_(part);
    }
  }
  auto parameters = master.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) parameters[i].mutable_grad() = sums[i];
}

class FsdpInHalf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Worlds, FsdpInHalf, testing::Values(1, 2));

TEST_P(FsdpInHalf, AreBitForBitThoseOfAnFp32MasterThatIsRoundedOnce) {
  ranks::run(GetParam(), [] {
    const World world = setup();
    const auto master = make_net({}, torch::kFloat);
    const auto net = make_net({}, torch::kFloat);
    const auto model = FullyShardedDataParallel(
        net, {.units = net->units,
              .mp_policy = {.param_dtype = torch::kBFloat16, .reduce_dtype = torch::kFloat}});
    torch::optim::SGD optimizer(model->parameters(), 0.1), oracle(master->parameters(), 0.1);
    for (int step = 0; step < 5; ++step) {
      optimizer.zero_grad();
      const auto input = own_rows(step, world.rank, world.world_size).to(torch::kBFloat16);
      loss_of(model->forward(input)).backward();
      set_mean_gradients(*master, step, world.world_size);
      EXPECT_EQ(net->first->weight.scalar_type(), torch::kBFloat16);
      EXPECT_EQ(model->parameters()[0].scalar_type(), torch::kFloat);
      expect_parts_of(*model, *master, 0, "at step " + std::to_string(step));
      optimizer.step();
      oracle.step();
    }
  });
}

// Each is about 1/256 of the first, so bf16 would lose them all.
TEST(FsdpGradients, AddedUpWithoutSyncKeepTheTypeInWhichTheyTravel) {
  struct Weight : torch::nn::Module {
    Tensor forward(double factor) { return (weight * factor).sum(); }
    Tensor weight = register_parameter("weight", torch::ones({4}));
  };
  ranks::run(2, [] {
    setup();
    const auto model = FullyShardedDataParallel(
        std::make_shared<Weight>(),
        {.mp_policy = {.param_dtype = torch::kBFloat16, .reduce_dtype = torch::kFloat}});
    {
      const auto no_sync = model->no_sync();
      model->forward(1.0).backward();
      for (int i = 0; i < 3; ++i) model->forward(1.0 / 512).backward();
    }
    model->forward(1.0 / 512).backward();
    EXPECT_EQ(model->parameters()[0].grad()[0].item<float>(), 1 + 4.0F / 512);
  });
}

TEST(FsdpGradients, AreClippedByTheNormOverAllRanks) {
  ranks::run(3, [] {
    const World world = setup();
    const NetShape shape = {.tied = true};
    const auto twin = make_net(shape);
    const auto net = make_net(shape);
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    loss_of(model->forward(own_rows(0, world.rank, 3))).backward();
    loss_of(twin->forward(global_rows(0, 3))).backward();
    const double norm = torch::nn::utils::clip_grad_norm_(each_once(twin->parameters()), 1e9);
    EXPECT_NEAR(model->clip_grad_norm_(2 * norm).item<double>(), norm, kClose);
    expect_parts_of(*model, *twin, kClose, "below the limit");
    torch::nn::utils::clip_grad_norm_(each_once(twin->parameters()), norm / 4);
    EXPECT_NEAR(model->clip_grad_norm_(norm / 4).item<double>(), norm, kClose);
    expect_parts_of(*model, *twin, kClose, "above the limit");
  });
  EXPECT_THAT([] { clip_grad_norm_({}, 1.0); }, ThrowsMessage<Error>(HasSubstr("no parameters")));
}

TEST(FsdpGradients, BuffersAreRankZerosInEachTrainingForward) {
  ranks::run(2, [] {
    const World world = setup();
    const auto net = make_net();
    net->shift.fill_(1 + world.rank);
    const auto model = FullyShardedDataParallel(net, {.units = net->units});
    EXPECT_EQ(net->shift[0].item<double>(), 1);
    const auto forward_with = [&](double value) {
      net->shift.fill_(value + world.rank);
      model->forward(own_rows(0, world.rank, 2));
      return net->shift[0].item<double>();
    };
    EXPECT_EQ(forward_with(10), 10);
    {
      const auto no_sync = model->no_sync();
      EXPECT_EQ(forward_with(20), 20) << "the first one after a forward that synchronizes";
      EXPECT_EQ(forward_with(30), 30 + world.rank);
    }
    EXPECT_EQ(forward_with(40), 40 + world.rank) << "follows one under no_sync()";
    EXPECT_EQ(forward_with(50), 50);
    const torch::NoGradGuard no_grad;
    EXPECT_EQ(forward_with(60), 60 + world.rank);
    const auto other = make_net();
    const auto loose = FullyShardedDataParallel(other, {.broadcast_buffers = false});
    const at::AutoGradMode with_gradients(true);
    other->shift.fill_(world.rank);
    loose->forward(own_rows(0, world.rank, 2));
    EXPECT_EQ(other->shift[0].item<double>(), world.rank);
  });
}

}  // namespace
}  // namespace distributed_utils::fsdp
