#include "distributed_utils/sync_batch_norm.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using torch::Tensor;

constexpr double kAlmost = 1e-12;
constexpr int kChannels = 3;

void expect_near(const Tensor& ours, const Tensor& expected, const std::string& what) {
  EXPECT_TRUE(torch::allclose(ours, expected, kAlmost, kAlmost))
      << what << ": " << ours << " and " << expected;
}

/// The samples of all ranks; a mean far from zero, as pixels have.
Tensor all_samples(int64_t count, int step) {
  auto generator = at::detail::createCPUGenerator(100 + step);
  return torch::randn({count, kChannels, 4, 2}, generator, torch::kDouble) * 3 + 50;
}

/// How many samples each rank has, and where they begin.
struct Shares {
  std::vector<int64_t> counts;
  int64_t all() const { return begin(counts.size()); }
  int64_t begin(size_t rank) const {
    return std::accumulate(counts.begin(), counts.begin() + static_cast<int64_t>(rank), int64_t{0});
  }
  Tensor of(const Tensor& samples, size_t rank) const {
    return samples.narrow(0, begin(rank), counts[rank]);
  }
};

/// Starts with weights and running statistics that hide nothing.
template <class Holder>
Holder make(torch::nn::BatchNormOptions options) {
  Holder module(std::move(options));
  module->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  if (module->weight.defined()) {
    module->weight.copy_(torch::arange(kChannels) - 0.5);
    module->bias.copy_(torch::arange(kChannels) * 2);
  }
  if (module->running_mean.defined()) {
    module->num_batches_tracked.zero_();
    module->running_mean.copy_(torch::arange(kChannels) + 1);
    module->running_var.copy_(torch::arange(kChannels) + 2);
  }
  return module;
}

/// Steps on this rank's share, and beside it a BatchNorm2d on everybody's.
void train_beside_whole(const Shares& shares, const torch::nn::BatchNormOptions& options) {
  const auto rank = static_cast<size_t>(setup().rank);
  auto ours = make<SyncBatchNorm2d>(options);
  auto whole = make<torch::nn::BatchNorm2d>(options);
  for (int step = 0; step < 3; ++step) {
    ours->zero_grad();
    whole->zero_grad();
    const Tensor samples = all_samples(shares.all(), step).requires_grad_();
    const Tensor mine = shares.of(samples, rank).detach().requires_grad_();
    const Tensor factors = all_samples(shares.all(), 50 + step) - 50;
    const Tensor expected = whole->forward(samples);
    (expected.pow(2) * factors).sum().backward();
    const Tensor output = ours->forward(mine);
    (output.pow(2) * shares.of(factors, rank)).sum().backward();
    expect_near(output, shares.of(expected, rank), "output");
    expect_near(mine.grad(), shares.of(samples.grad(), rank), "gradient of the input");
    if (options.affine()) {
      for (const auto& parameter : ours->named_parameters()) {
        all_reduce(parameter.value().grad());
        expect_near(parameter.value().grad(), whole->named_parameters()[parameter.key()].grad(),
                    "gradient of " + parameter.key());
      }
    }
    for (const auto& buffer : ours->named_buffers()) {
      if (!buffer.value().defined()) continue;
      expect_near(buffer.value(), whole->named_buffers()[buffer.key()], buffer.key());
    }
  }
}

using torch::nn::BatchNormOptions;

struct NormCase {
  const char* name;
  Shares shares;
  BatchNormOptions options = BatchNormOptions(kChannels);
};

void PrintTo(const NormCase& one, std::ostream* stream) { *stream << one.name; }

struct NameOfCase {
  std::string operator()(const auto& test) const { return test.param.name; }
};

class SyncBatchNorm : public testing::TestWithParam<NormCase> {};
INSTANTIATE_TEST_SUITE_P(
    Cases, SyncBatchNorm,
    testing::Values(
        NormCase{"One", {{4}}}, NormCase{"Two", {{4, 4}}}, NormCase{"Three", {{2, 2, 2}}},
        NormCase{"Unequal", {{5, 1, 2}}}, NormCase{"OneHasNothing", {{3, 0}}},
        NormCase{"OneSampleEach", {{1, 1}}},
        NormCase{"NoMomentum", {{3, 2}}, BatchNormOptions(kChannels).momentum(std::nullopt)},
        NormCase{"NoWeights", {{3, 2}}, BatchNormOptions(kChannels).affine(false).eps(0.5)},
        NormCase{"NoBuffers", {{3, 2}}, BatchNormOptions(kChannels).track_running_stats(false)}),
    NameOfCase());

TEST_P(SyncBatchNorm, RanksComputeWhatOneComputesOnAllSamples) {
  const NormCase& one = GetParam();
  ranks::run(static_cast<int>(one.shares.counts.size()),
             [&] { train_beside_whole(one.shares, one.options); });
}

// A rank evaluates alone, so a collective would wait for ever.
TEST(SyncBatchNorm, EvaluationMakesNoCollective) {
  ranks::run(2, [] {
    const World world = setup({.timeout = std::chrono::seconds(20)});
    auto ours = make<SyncBatchNorm2d>(BatchNormOptions(kChannels));
    auto plain = make<torch::nn::BatchNorm2d>(BatchNormOptions(kChannels));
    ours->eval();
    plain->eval();
    if (world.rank == 0) {
      const Tensor input = all_samples(2, 0);
      expect_near(ours->forward(input), plain->forward(input), "output");
      EXPECT_EQ(ours->num_batches_tracked.item<int64_t>(), 0);
    }
    barrier();
    ours->train();
    ours->synchronize(false);
    plain->train();
    if (world.rank == 0) {
      const Tensor input = all_samples(2, 0);
      expect_near(ours->forward(input), plain->forward(input), "output");
    }
    barrier();
  });
}

TEST(SyncBatchNorm, KeepsAllRanksTheSameBits) {
  ranks::run(3, [] {
    const World world = setup();
    SyncBatchNorm2d ours(kChannels);  // fp32
    for (int step = 0; step < 5; ++step) {
      ours->forward(all_samples(2 + world.rank, 10 * step + world.rank).to(torch::kFloat));
    }
    for (const Tensor& statistics : {ours->running_mean, ours->running_var}) {
      const Tensor all = all_gather(statistics);
      for (int rank = 1; rank < 3; ++rank) EXPECT_TRUE(torch::equal(all[rank], all[0]));
    }
  });
}

// As under autocast: the input is fp16, parameters and statistics are fp32.
TEST(SyncBatchNorm, TakesHalfInputs) {
  ranks::run(2, [] {
    const World world = setup();
    SyncBatchNorm2d ours(kChannels);
    const Tensor samples = all_samples(4, 0).to(torch::kHalf);
    const Tensor mine = samples.narrow(0, 2 * world.rank, 2).detach().requires_grad_();
    const Tensor output = ours->forward(mine);
    EXPECT_EQ(output.scalar_type(), torch::kHalf);
    torch::nn::BatchNorm2d whole(kChannels);
    const Tensor expected = whole->forward(samples.to(torch::kFloat));
    EXPECT_TRUE(torch::allclose(output.to(torch::kFloat), expected.narrow(0, 2 * world.rank, 2),
                                1e-2, 1e-2));
    EXPECT_TRUE(torch::allclose(ours->running_mean, whole->running_mean, 1e-5));
    EXPECT_TRUE(torch::allclose(ours->running_var, whole->running_var, 1e-5));
    output.sum().backward();
    EXPECT_EQ(mine.grad().scalar_type(), torch::kHalf);
    EXPECT_EQ(ours->weight.grad().scalar_type(), torch::kFloat);
  });
}

/// Has norms where C++ models have them.
struct NormsInPlaces : torch::nn::Module {
  Tensor forward(const Tensor& input) { return own->forward(layers->forward(input)).mean({2, 3}); }
  torch::nn::Sequential layers = register_module(
      "layers", torch::nn::Sequential(torch::nn::Conv2d(kChannels, kChannels, 1),
                                      torch::nn::BatchNorm2d(kChannels), torch::nn::ReLU()));
  SyncBatchNorm2d own = register_module("own", SyncBatchNorm2d(kChannels));
};

TEST(ConvertSyncBatchNorm, MakesRanksComputeAsOne) {
  ranks::run(2, [] {
    const World world = setup();
    const auto make_net = [] {
      torch::manual_seed(1);
      auto net = std::make_shared<NormsInPlaces>();
      net->own->synchronize(false);
      net->to(torch::kDouble);
      return net;
    };
    const auto whole = make_net(), ours = make_net();
    torch::optim::SGD optimizer(ours->parameters(), 0.1), of_whole(whole->parameters(), 0.1);
    const auto weight = ours->layers->parameters()[2];
    EXPECT_EQ(convert_sync_batchnorm(ours), ours);
    EXPECT_TRUE(ours->layers->parameters()[2].is_same(weight)) << "the optimizer holds it";
    const auto model = DistributedDataParallel(ours);
    for (int step = 0; step < 3; ++step) {
      const Tensor samples = all_samples(6, step);
      optimizer.zero_grad();
      of_whole.zero_grad();
      model->forward(samples.narrow(0, 3 * world.rank, 3)).pow(3).mean().backward();
      whole->forward(samples).pow(3).mean().backward();
      optimizer.step();
      of_whole.step();
    }
    for (const auto& item : whole->named_parameters()) {
      expect_near(ours->named_parameters()[item.key()], item.value(), item.key());
    }
    for (const auto& item : whole->named_buffers()) {
      expect_near(ours->named_buffers()[item.key()], item.value(), item.key());
    }
  });
}

TEST(ConvertSyncBatchNorm, KeepsWhatABatchNormIs) {
  auto former = make<torch::nn::BatchNorm2d>(BatchNormOptions(kChannels).momentum(0.3));
  former->eval();
  const auto next =
      std::dynamic_pointer_cast<SyncBatchNorm2dImpl>(convert_sync_batchnorm(former.ptr()));
  ASSERT_TRUE(next);
  EXPECT_TRUE(next->weight.is_same(former->weight));
  EXPECT_FALSE(next->is_training());
  EXPECT_EQ(next->options.momentum(), 0.3);
  for (const auto& item : former->named_buffers()) {
    EXPECT_TRUE(torch::equal(next->named_buffers()[item.key()], item.value())) << item.key();
  }
  EXPECT_EQ(next->named_parameters().keys(), former->named_parameters().keys());
  EXPECT_THAT(c10::str(*next), HasSubstr("SyncBatchNorm2d(3, eps=1e-05, momentum=0.3"));
}

TEST(ConvertSyncBatchNorm, RefusesWhatItCannotReach) {
  struct Typed : torch::nn::Module {
    torch::nn::Sequential first = register_module(
        "first", torch::nn::Sequential(torch::nn::BatchNorm2d(torch::nn::BatchNormOptions(2))));
    torch::nn::BatchNorm2d second = register_module("second", torch::nn::BatchNorm2d(2));
  };
  const auto typed = std::make_shared<Typed>();
  EXPECT_THAT([&] { convert_sync_batchnorm(typed); },
              ThrowsMessage<Error>(HasSubstr("'second' is a BatchNorm2d outside a Sequential")));
  EXPECT_NE(typed->first[0]->as<torch::nn::BatchNorm2d>(), nullptr) << "changes nothing";
  torch::nn::Sequential flat(torch::nn::Linear(2, 2), torch::nn::BatchNorm1d(2));
  EXPECT_THAT([&] { convert_sync_batchnorm(flat.ptr()); },
              ThrowsMessage<Error>(HasSubstr("'1' is a BatchNorm for inputs of other")));
  SyncBatchNorm2d norm(2);
  EXPECT_THAT(
      [&] {
        norm->forward(torch::ones({2, 2}));
      },
      ThrowsMessage<c10::Error>(HasSubstr("expected 4D input")));
  EXPECT_THAT(
      [&] {
        norm->forward(torch::ones({2, 3, 1, 1}));
      },
      ThrowsMessage<c10::Error>(HasSubstr("expected 2 channels (got 3)")));
}

}  // namespace
}  // namespace distributed_utils
