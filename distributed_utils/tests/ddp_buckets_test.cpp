// The buckets of DistributedDataParallel: given, rebuilt, settled.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "either_reducer.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

/// Of four trainable parameters.
torch::nn::Sequential make_net() {
  return torch::nn::Sequential(torch::nn::Linear(5, 16), torch::nn::Tanh(),
                               torch::nn::Linear(16, 3));
}

void train_step(const auto& model) {
  model->zero_grad();
  model->forward(torch::ones({2, 5})).sum().backward();
}

class DdpBuckets : public EitherReducer {};
INSTANTIATE_TEST_SUITE_P(Reducers, DdpBuckets, kEitherReducer, NameOfReducer());

TEST_P(DdpBuckets, GivenBucketsStayAsTheyAre) {
  ranks::run(2, [] {
    setup();
    const auto net = make_net();
    const std::vector<std::vector<size_t>> odd = {{1, 2}, {0}, {3}};
    const auto model = DistributedDataParallel(net.ptr(), either({.bucket_indices = odd}));
    EXPECT_EQ(model->settle_buckets(), odd);
    for (int step = 0; step < 3; ++step) {
      train_step(model);
      EXPECT_EQ(model->bucket_indices(), odd);
    }
    EXPECT_EQ(model->settle_buckets(), odd);
  });
}

TEST_P(DdpBuckets, SettledBucketsAreThoseOfAllLaterSteps) {
  ranks::run(2, [] {
    setup();
    const auto net = make_net();
    const auto model = DistributedDataParallel(
        net.ptr(), either({.bucket_cap_bytes = 400, .first_bucket_bytes = 100}));
    EXPECT_TRUE(model->settle_buckets().empty());
    const auto before = model->bucket_indices();
    train_step(model);
    EXPECT_EQ(model->bucket_indices(), before);
    const auto settled = model->settle_buckets();
    EXPECT_FALSE(settled.empty());
    train_step(model);
    EXPECT_EQ(model->bucket_indices(), settled);
    EXPECT_EQ(model->settle_buckets(), settled);
  });
}

TEST_P(DdpBuckets, RefusesBucketsOfAnotherModel) {
  ranks::run(2, [] {
    setup();
    const auto net = make_net();
    using Buckets = std::vector<std::vector<size_t>>;
    for (const auto& wrong : {Buckets{{0, 1, 2}}, Buckets{{0, 1}, {2, 4}}, Buckets{{0, 1, 2, 2}},
                              Buckets{{0, 1, 2, 3}, {}}, Buckets{{0, 1, 2, 3, 3}}}) {
      EXPECT_THAT([&] { DistributedDataParallel(net.ptr(), either({.bucket_indices = wrong})); },
                  ThrowsMessage<Error>(HasSubstr("each of the 4 trainable parameters once")));
    }
  });
}

}  // namespace
}  // namespace distributed_utils
