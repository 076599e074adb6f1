#include "distributed_utils/ddp.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "either_reducer.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

constexpr double kTolerance = 1e-13;
constexpr int kRows = 4;  // of each rank and step

/// A frozen layer, a buffer that enters the result, and, on request, a layer left out of forward.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(bool with_unused)
      : first(register_module("first", torch::nn::Linear(5, 16))),
        frozen(register_module("frozen", torch::nn::Linear(16, 16))),
        second(register_module("second", torch::nn::Linear(16, 3))),
        shift(register_buffer("shift", torch::zeros({3}))) {
    if (with_unused) unused = register_module("unused", torch::nn::Linear(16, 2));
    for (auto& parameter : frozen->parameters()) parameter.requires_grad_(false);
    to(torch::kDouble);
  }
  Tensor forward(const Tensor& input) {
    return second->forward(torch::tanh(frozen->forward(torch::tanh(first->forward(input))))) +
           shift;
  }

  torch::nn::Linear first, frozen, second, unused{nullptr};
  Tensor shift;
};
TORCH_MODULE(Net);

/// The rows of all ranks at one step; a rank takes its own kRows of them.
Tensor global_rows(int step, int world_size) {
  auto generator = at::detail::createCPUGenerator(1000 + step);
  return torch::randn({kRows * world_size, 5}, generator, torch::kDouble);
}

Tensor own_rows(int step, const World& world) {
  return global_rows(step, world.world_size).slice(0, kRows * world.rank, kRows * (world.rank + 1));
}

Tensor loss_of(const Tensor& output) { return output.pow(2).sum(1).mean(); }

void expect_same(const torch::nn::Module& ours, const torch::nn::Module& twin, int step) {
  const auto expected = twin.named_parameters();
  for (const auto& item : ours.named_parameters()) {
    const Tensor& other = expected[item.key()];
    EXPECT_TRUE(torch::allclose(item.value(), other, kTolerance, kTolerance))
        << item.key() << " after step " << step;
    ASSERT_EQ(item.value().grad().defined(), other.grad().defined()) << item.key();
    if (other.grad().defined()) {
      EXPECT_TRUE(torch::allclose(item.value().grad(), other.grad(), kTolerance, kTolerance))
          << "gradient of " << item.key() << " at step " << step;
    }
  }
}

/// Trains 20 steps wrapped, and beside it, on this rank alone, a twin on everybody's rows.
void train_beside_twin(const World& world, bool with_unused,
                       DistributedDataParallelOptions options) {
  torch::manual_seed(5);
  Net twin(with_unused);
  torch::manual_seed(5 + world.rank);  // ranks start apart; the wrapper gives them rank 0's weights
  Net net(with_unused);
  const auto model = DistributedDataParallel(net.ptr(), either(options));
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  torch::optim::SGD twin_optimizer(twin->parameters(), 0.1);
  for (int step = 0; step < 20; ++step) {
    // Every rank would shift differently; rank 0's buffer is the one that counts.
    net->shift.fill_(0.01 * step + world.rank);
    twin->shift.fill_(0.01 * step);
    model->zero_grad();
    loss_of(model->forward(own_rows(step, world))).backward();
    twin_optimizer.zero_grad();
    loss_of(twin->forward(global_rows(step, world.world_size))).backward();
    if (with_unused) {
      // The Reducer leaves a zero gradient where no rank used the parameter; the twin has none.
      for (auto& parameter : net->unused->parameters()) parameter.mutable_grad() = Tensor();
    }
    optimizer.step();
    twin_optimizer.step();
    expect_same(*net, *twin, step);
    EXPECT_EQ(net->shift[0].item<double>(), 0.01 * step);
  }
}

class Ddp : public EitherReducerOnRanks {};
INSTANTIATE_TEST_SUITE_P(Worlds, Ddp, testing::Combine(testing::Values(1, 2, 3), kEitherReducer),
                         NameOfRanksAndReducer());

TEST_P(Ddp, TrainsLikeOneRankOnAllRows) {
  ranks::run(world_size(), [] { train_beside_twin(setup(), false, {}); });
}

TEST_P(Ddp, TrainsLikeOneRankInSeveralBuckets) {
  ranks::run(world_size(), [] {
    train_beside_twin(setup(), false, {.bucket_cap_bytes = 400, .first_bucket_bytes = 100});
  });
}

TEST_P(Ddp, TrainsLikeOneRankWithGradientsAsBucketViews) {
  ranks::run(world_size(), [] {
    train_beside_twin(setup(), false, {.bucket_cap_bytes = 400, .gradient_as_bucket_view = true});
  });
}

TEST_P(Ddp, TrainsLikeOneRankWithAnUnusedParameter) {
  ranks::run(world_size(), [] {
    train_beside_twin(setup(), true, {.bucket_cap_bytes = 400, .find_unused_parameters = true});
  });
}

class DdpWith : public EitherReducer {};
INSTANTIATE_TEST_SUITE_P(Reducers, DdpWith, kEitherReducer, NameOfReducer());

TEST_P(DdpWith, AnUnusedParameterIsAnErrorUnlessAskedFor) {
  ranks::run(2, [] {
    const World world = setup();
    const auto model = DistributedDataParallel(Net(true).ptr(), either());
    const auto step = [&] { loss_of(model->forward(own_rows(0, world))).backward(); };
    step();
    EXPECT_THAT(step, ThrowsMessage<c10::Error>(HasSubstr("find_unused_parameters")));
  });
}

TEST_P(DdpWith, NoSyncAddsUpLocallyAndTheNextBackwardAverages) {
  ranks::run(3, [] {
    const World world = setup();
    torch::manual_seed(5);
    Net net(false);
    torch::manual_seed(5);
    Net twin(false);
    const auto model = DistributedDataParallel(net.ptr(), either({.bucket_cap_bytes = 400}));
    for (int round = 0; round < 3; ++round) {  // the first also rebuilds the buckets
      model->zero_grad();
      twin->zero_grad();
      {
        const auto no_sync = model->no_sync();
        for (int step = 0; step < 2; ++step) {
          loss_of(model->forward(own_rows(3 * round + step, world))).backward();
        }
      }
      const Tensor local = net->first->weight.grad().clone();
      all_reduce(local, ReduceOp::AVG);
      EXPECT_FALSE(torch::allclose(local, net->first->weight.grad())) << "was averaged already";
      loss_of(model->forward(own_rows(3 * round + 2, world))).backward();
      for (int step = 0; step < 3; ++step) {
        loss_of(twin->forward(global_rows(3 * round + step, world.world_size))).backward();
      }
      expect_same(*net, *twin, round);
    }
  });
}

// Ranks evaluate different numbers of batches, so a forward without gradients must not communicate.
TEST_P(DdpWith, AForwardWithoutGradientsMakesNoCollective) {
  ranks::run(3, [] {
    const World world = setup();
    Net net(false);
    const auto model = DistributedDataParallel(net.ptr(), either());
    for (int step = 0; step < 2; ++step) {
      loss_of(model->forward(own_rows(step, world))).backward();
      const torch::NoGradGuard no_grad;
      for (int batch = 0; batch < world.rank; ++batch) model->forward(own_rows(batch, world));
    }
    barrier();
  });
}

TEST_P(DdpWith, BucketsAreRebuiltAndCanBeGivenToTheNextRun) {
  ranks::run(3, [] {
    const World world = setup();
    torch::manual_seed(1);
    const auto run = [&](const std::vector<std::vector<size_t>>& buckets, int first, int last,
                         Net net) {
      const auto model = DistributedDataParallel(
          net.ptr(),
          either({.bucket_cap_bytes = 400, .first_bucket_bytes = 100, .bucket_indices = buckets}));
      torch::optim::SGD optimizer(model->parameters(), 0.1);
      for (int step = first; step < last; ++step) {
        optimizer.zero_grad();
        loss_of(model->forward(own_rows(step, world).to(torch::kFloat))).backward();
        optimizer.step();
      }
      return model->bucket_indices();
    };
    Net whole(false);
    whole->to(torch::kFloat);
    Net halves(false);
    halves->to(torch::kFloat);
    {
      const torch::NoGradGuard no_grad;
      for (const auto& item : whole->named_parameters()) {
        halves->named_parameters()[item.key()].copy_(item.value());
      }
    }
    const auto rebuilt = run({}, 0, 12, whole);
    EXPECT_GT(rebuilt.size(), 1U);
    const auto after_half = run({}, 0, 6, halves);
    EXPECT_EQ(after_half, rebuilt);
    EXPECT_EQ(run(after_half, 6, 12, halves), rebuilt);
    for (const auto& item : whole->named_parameters()) {
      EXPECT_TRUE(torch::equal(item.value(), halves->named_parameters()[item.key()])) << item.key();
    }
  });
}

TEST_P(DdpWith, ForwardsAnySignature) {
  struct Pair : torch::nn::Module {
    std::pair<Tensor, std::map<std::string, Tensor>> forward(const Tensor& input, int times,
                                                             std::vector<Tensor>& seen) {
      seen.push_back(input);
      return {input * weight * times, {{"twice", input * weight * 2}}};
    }
    Tensor weight = register_parameter("weight", torch::ones({1}));
  };
  ranks::run(2, [] {
    setup();
    const auto model =
        DistributedDataParallel(std::make_shared<Pair>(), either({.find_unused_parameters = true}));
    std::vector<Tensor> seen;
    const auto [result, more] = model->forward(torch::ones({1}), 3, seen);
    EXPECT_EQ(result.item<float>(), 3);
    EXPECT_EQ(seen.size(), 1U);
    (result + more.at("twice")).sum().backward();
    EXPECT_EQ(model->module()->weight.grad().item<float>(), 5);
  });
}

TEST_P(DdpWith, AResultItCannotLookIntoIsAnErrorOnlyWhenItMust) {
  struct Opaque {
    Tensor tensor;
  };
  struct Strange : torch::nn::Module {
    Opaque forward(const Tensor& input) { return {input * weight}; }
    Tensor weight = register_parameter("weight", torch::ones({1}));
  };
  ranks::run(1, [] {
    setup();
    const auto module = std::make_shared<Strange>();
    EXPECT_NO_THROW(DistributedDataParallel(module, either())->forward(torch::ones({1})));
    const auto looking = DistributedDataParallel(module, either({.find_unused_parameters = true}));
    EXPECT_THAT([&] { looking->forward(torch::ones({1})); },
                ThrowsMessage<Error>(HasSubstr("collect_tensors")));
  });
}

TEST_P(DdpWith, AveragesWithinItsGroup) {
  ranks::run(3, [] {
    const World world = setup();
    const auto pair = new_group({0, 2});
    if (!pair) return;
    auto linear = torch::nn::Linear(torch::nn::LinearOptions(1, 1).bias(false));
    const auto model = DistributedDataParallel(linear.ptr(), either({.group = *pair}));
    model->forward(torch::full({1, 1}, static_cast<float>(world.rank))).sum().backward();
    EXPECT_EQ(linear->weight.grad().item<float>(), 1);
  });
}

TEST_P(DdpWith, RefusesModelsThatDifferBetweenRanks) {
  ranks::run(2, [] {
    const World world = setup();
    auto linear = torch::nn::Linear(3, 2 + world.rank);
    EXPECT_ANY_THROW(DistributedDataParallel(linear.ptr(), either()));
  });
}

TEST_P(DdpWith, RefusesWhatCannotBeTrained) {
  EXPECT_THAT([] { DistributedDataParallel(torch::nn::Linear(1, 1).ptr(), either()); },
              ThrowsMessage<Error>(HasSubstr("setup()")));
  ranks::run(1, [] {
    setup();
    auto linear = torch::nn::Linear(1, 1);
    for (auto& parameter : linear->parameters()) parameter.requires_grad_(false);
    EXPECT_THAT([&] { DistributedDataParallel(linear.ptr(), either()); },
                ThrowsMessage<Error>(HasSubstr("gradient")));
  });
}

}  // namespace
}  // namespace distributed_utils
