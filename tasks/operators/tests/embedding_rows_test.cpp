#include "operators/embedding_rows.hpp"

#include "devices.hpp"
#include "distributed_utils/collectives.hpp"
#include "distributed_utils/setup.hpp"
#include "operators/embedding.hpp"
#include "ranks.hpp"
#include "tasks/options.hpp"

namespace tasks::operators {
namespace {

namespace du = distributed_utils;

constexpr int64_t kMost = 70;

/// What a rank's batch is: some words often, some on several ranks, fewer than there is room for.
torch::Tensor words_of(int rank, int64_t words) {
  auto generator = at::detail::createCPUGenerator(rank);
  return torch::randint(words, {rank == 1 ? 3 : 8, 8}, generator, torch::kLong);
}

torch::Tensor scale_of(int rank, int64_t words, int64_t width) {
  auto generator = at::detail::createCPUGenerator(10 + rank);
  const auto shape = words_of(rank, words).sizes();
  return torch::randn({shape[0], shape[1], width}, generator);
}

/// In double precision, by torch's own.
torch::Tensor mean_gradient(int ranks, int64_t words, int64_t width) {
  auto sum = torch::zeros({words, width}, torch::kDouble);
  for (int rank = 0; rank < ranks; ++rank) {
    sum += at::embedding_dense_backward(scale_of(rank, words, width).to(torch::kDouble),
                                        words_of(rank, words), words, -1, false);
  }
  return sum / ranks;
}

void expect_mean(const du::World& world, int64_t words, int64_t width) {
  const auto rows = c10::make_intrusive<EmbeddingRows>(du::world_group(), kMost);
  const auto weight = torch::ones({words, width}, world.device).requires_grad_();
  for (int step = 1; step < 3; ++step) {  // gradients add up
    operators::embedding(weight, words_of(world.rank, words).to(world.device), rows)
        .backward(scale_of(world.rank, words, width).to(world.device));
    const auto wanted = step * mean_gradient(world.world_size, words, width);
    EXPECT_LE(relative_error(weight.grad(), wanted), 3e-6) << words << " " << width;
  }
  const auto all = du::all_gather(weight.grad());
  EXPECT_TRUE(all.eq(all[0]).all().item<bool>()) << "ranks differ in bits";
}

class EmbeddingRowsOf : public testing::TestWithParam<std::tuple<torch::DeviceType, int>> {
 protected:
  void SetUp() override {
    const auto [device, needed] = GetParam();
    if (device == torch::kCUDA && ranks::gpus() < needed) {
      GTEST_SKIP() << "needed GPUs: " << needed;
    }
  }
};
std::string name_of(const testing::TestParamInfo<std::tuple<torch::DeviceType, int>>& test) {
  return std::to_string(std::get<1>(test.param)) +
         (std::get<0>(test.param) == torch::kCPU ? "CPUs" : "GPUs");
}
INSTANTIATE_TEST_SUITE_P(On, EmbeddingRowsOf,
                         testing::Combine(testing::Values(torch::kCPU, torch::kCUDA),
                                          testing::Values(1, 2, 3)),
                         name_of);

TEST_P(EmbeddingRowsOf, MakeTheMeanOfAllRanks) {
  const auto [device, ranks] = GetParam();
  ranks::run(ranks, [type = device] {
    const auto world = du::setup({.device = c10::Device(type)});
    for (const int64_t width : {1, 5, 128, 300}) {
      for (const int64_t words : {2, 50, 3000}) expect_mean(world, words, width);
    }
    expect_mean(world, 70000, 5);  // More than 16 bits can name.
    du::destroy_process_group();
  });
}

TEST_P(EmbeddingRowsOf, TakeNoWords) {
  const auto [device, ranks] = GetParam();
  ranks::run(ranks, [type = device] {
    const auto world = du::setup({.device = c10::Device(type)});
    const auto mean =
        EmbeddingRows(du::world_group(), kMost)
            .mean(torch::zeros({0, 3}, world.device),
                  torch::zeros({0}, torch::dtype(torch::kLong).device(world.device)), 5);
    EXPECT_TRUE(torch::equal(mean, torch::zeros({5, 3}, world.device)));
    du::destroy_process_group();
  });
}

TEST(EmbeddingRows, PayWhereFewOfManyWordsAreUsed) {
  ranks::run(2, [] {
    du::setup({.device = c10::Device(c10::kCPU)});
    const auto pays = [](int64_t most, const torch::Tensor& weight) {
      return EmbeddingRows(du::world_group(), most).pays_for(weight);
    };
    EXPECT_TRUE(pays(4096, torch::empty({66000, 128})));
    EXPECT_FALSE(pays(4096, torch::empty({66000, 128}, torch::kDouble)));
    EXPECT_TRUE(pays(96, torch::empty({100, 128})));
    EXPECT_FALSE(pays(100, torch::empty({100, 128})));
  });
}

TEST(EmbeddingRows, RefuseMoreWordsThanPromised) {
  ranks::run(1, [] {
    du::setup({.device = c10::Device(c10::kCPU)});
    const EmbeddingRows rows(du::world_group(), 4);
    EXPECT_THAT(
        [&] {
          rows.mean(torch::zeros({5, 3}), torch::zeros({5}, torch::kLong), 9);
        },
        testing::ThrowsMessage<Error>(
            testing::HasSubstr("5 words at once, but ranks have room for 4")));
  });
}

}  // namespace
}  // namespace tasks::operators
