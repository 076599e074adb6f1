// The built-in pictures, and what is known of the best that anybody can do on them.
#include "breeds.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <fstream>

#include "errors.hpp"
#include "folders.hpp"
#include "jpeg.hpp"
#include "tasks/keyed_random.hpp"
#include "temporary_folder.hpp"

namespace tasks::images {
namespace {

TEST(Breeds, MeansAreTenPointsOneApart) {
  Traits sum{};
  for (int64_t a = 0; a < kBreeds; ++a) {
    const auto mean = mean_traits(a);
    for (size_t i = 0; i < 3; ++i) sum[i] += mean[i];
    for (int64_t b = 0; b < a; ++b) {
      const auto other = mean_traits(b);
      double squares = 0;
      for (size_t i = 0; i < 3; ++i) squares += (mean[i] - other[i]) * (mean[i] - other[i]);
      EXPECT_GT(squares, 0.99) << a << " and " << b;
    }
  }
  for (const double value : sum) EXPECT_NEAR(value, 0, 1e-12);
}

// The numbers are those of a Python program with numpy's random numbers, 400,000 draws; four of
// both programs' standard errors lie between.
TEST(Breeds, TheBestPossibleIsPythons) {
  const auto easy = best_possible(0.33);
  EXPECT_NEAR(easy.accuracy, 0.8149, 0.0043);
  EXPECT_NEAR(easy.top5, 0.9978, 0.0006);
  EXPECT_NEAR(easy.loss, 0.4923, 0.009);
  const auto hard = best_possible(0.6);
  EXPECT_NEAR(hard.accuracy, 0.494, 0.006);
  EXPECT_NEAR(hard.top5, 0.947, 0.003);
  EXPECT_NEAR(hard.loss, 1.351, 0.012);
}

TEST(Breeds, WithoutSpreadNobodyErrs) {
  const auto best = best_possible(0.05);
  EXPECT_EQ(best.accuracy, 1);
  EXPECT_LT(best.loss, 1e-9);
}

TEST(KeyedRandom, IsUniformAndNormalAsSaid) {
  double sum = 0, squares = 0, normal = 0, normal_squares = 0, nearly_squares = 0;
  constexpr int kDraws = 20'000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    KeyedRandom random(1, 2, i);
    const double u = random.uniform(), n = random.normal(), m = random.nearly_normal();
    sum += u, squares += u * u, normal += n, normal_squares += n * n, nearly_squares += m * m;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
  EXPECT_NEAR(squares / kDraws, 1 / 3.0, 0.01);
  EXPECT_NEAR(normal / kDraws, 0, 0.03);
  EXPECT_NEAR(normal_squares / kDraws, 1, 0.04);
  EXPECT_NEAR(nearly_squares / kDraws, 1, 0.04);
}

TEST(Breeds, AreWrittenAsFoldersAndTheSameAgain) {
  const BreedsOptions options{.side = 16, .train_pictures = 25, .evaluation_pictures = 13};
  const TemporaryFolder one, same, other;
  write_breeds(options, one.path());
  write_breeds(options, same.path());
  write_breeds({.side = 16, .train_pictures = 25, .evaluation_pictures = 13, .seed = 1},
               other.path());
  const auto found = find_pictures(one.path()), again = find_pictures(same.path()),
             others = find_pictures(other.path());
  EXPECT_EQ(found.classes.size(), 10);
  EXPECT_EQ(found.train.size(), 25);
  EXPECT_EQ(found.validation.size(), 13);
  EXPECT_EQ(found.test.size(), 13);
  for (size_t i = 0; i < 25; ++i) {
    const auto picture = read_jpeg(found.train[i].file);
    EXPECT_EQ(picture.sizes(), (std::vector<int64_t>{16, 16, 3}));
    EXPECT_TRUE(torch::equal(picture, read_jpeg(again.train[i].file)));
    EXPECT_FALSE(torch::equal(picture, read_jpeg(others.train[i].file)));
  }
  EXPECT_FALSE(torch::equal(read_jpeg(found.validation[0].file), read_jpeg(found.test[0].file)));
}

// A picture shows its traits: with the same nuisances, each of them changes it.
TEST(Breeds, APictureShowsEachTrait) {
  const auto draw = [](const Traits& traits) {
    KeyedRandom random(1, 2, 3);
    return draw_animal(traits, 32, random).to(torch::kDouble);
  };
  const auto plain = draw({0, 0, 0});
  for (size_t i = 0; i < 3; ++i) {
    Traits changed{};
    changed.at(i) = 1;
    EXPECT_GT((draw(changed) - plain).abs().mean().item<double>(), 2) << i;
  }
}

}  // namespace
}  // namespace tasks::images
