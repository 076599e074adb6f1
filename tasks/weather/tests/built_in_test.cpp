// The built-in planet's files.
#include "built_in.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cmath>
#include <csignal>

#include "errors.hpp"
#include "fields.hpp"
#include "measures.hpp"
#include "planet/planet.hpp"
#include "temporary_folder.hpp"
#include "written.hpp"

namespace tasks::weather {
namespace {

using testing::HasSubstr;

constexpr PlanetSettings kSmall{
    .height = 8, .width = 16, .degree = 3, .steps = 501, .held_out = 40, .seed = 3};

class BuiltInData : public testing::Test {
 protected:
  BuiltInData() { setenv("WORLDSIZE_CACHE", folder_.path().c_str(), 1); }
  ~BuiltInData() override { unsetenv("WORLDSIZE_CACHE"); }

  TemporaryFolder folder_;
};

TEST_F(BuiltInData, IsLaidOutAsRealDataAndMadeOnce) {
  const auto first = built_in_data(kSmall);
  EXPECT_EQ(first.folder.parent_path(), folder_.path());
  const Fields train(first.folder, "train", 1, torch::kFloat);
  // What 500 steps leave over is one, which has no pair: it joins them.
  EXPECT_EQ(train.size(), 500);
  EXPECT_EQ(train.channels(), 20);
  EXPECT_EQ(train.height(), 8);
  EXPECT_EQ(train.width(), 16);
  EXPECT_EQ(Fields(first.folder, "validation", 1, torch::kFloat).size(), 39);
  EXPECT_EQ(Fields(first.folder, "test", 1, torch::kFloat).size(), 39);
  const auto made = std::filesystem::last_write_time(first.folder / "train/1990.h5");
  EXPECT_EQ(built_in_data(kSmall).marks.perfect_loss, first.marks.perfect_loss);
  EXPECT_EQ(std::filesystem::last_write_time(first.folder / "train/1990.h5"), made);
}

TEST_F(BuiltInData, IsTheSameEverywhereAndOtherForAnotherSeed) {
  const auto one = built_in_data(kSmall);
  const TemporaryFolder elsewhere;
  setenv("WORLDSIZE_CACHE", elsewhere.path().c_str(), 1);
  const auto same = built_in_data(kSmall);
  auto settings = kSmall;
  settings.seed = 4;
  const auto other = built_in_data(settings);
  for (const char* file : {"train/1990.h5", "valid/1990.h5", "stats/global_stds.npy"}) {
    EXPECT_TRUE(bytes_of(one.folder / file) == bytes_of(same.folder / file)) << file;
  }
  EXPECT_NE(bytes_of(one.folder / "test/1990.h5"), bytes_of(other.folder / "test/1990.h5"));
  EXPECT_NE(bytes_of(one.folder / "test/1990.h5"), bytes_of(one.folder / "valid/1990.h5"));
}

// Through files, loader and measures: the marks are what they say.
TEST_F(BuiltInData, MarksAreThoseOfTheFiles) {
  auto settings = kSmall;
  settings.held_out = 500;
  const auto built_in = built_in_data(settings);
  const Fields valid(built_in.folder, "validation", 1, torch::kDouble);
  std::vector<size_t> all(valid.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  const auto batch = valid.fetch(all);
  const auto& now = batch.input[0];
  const auto& next = batch.target.tensor();
  const auto& marks = built_in.marks;
  EXPECT_NEAR(relative_errors(now, next).mean().item<double>(), marks.persistence_loss, 1e-6);
  EXPECT_NEAR(weighted_square_errors(now, next).mean().sqrt().item<double>(),
              marks.persistence_error, 1e-6);
  EXPECT_NEAR(relative_errors(torch::zeros_like(next), next).mean().item<double>(), 1, 1e-12);
  EXPECT_NEAR(marks.least_error, std::sqrt(1 - std::exp(-0.06)), 1e-12);
  EXPECT_LT(marks.perfect_loss, marks.persistence_loss);

  // The perfect forecast again, from the files' own states, held against the files.
  const planet::Planet planet(settings.degree, settings.height, settings.width);
  const auto states = planet.run(500, (uint64_t{3} << 32) + 1);
  const auto deviations = torch::tensor(planet.deviations(), torch::kDouble).view({20, 1, 1});
  double loss = 0, squares = 0;
  for (size_t t = 0; t + 1 < states.size(); ++t) {
    const auto forecast = (torch::tensor(planet.fields(planet.forecast(states[t])), torch::kDouble)
                               .view({20, 8, 16}) /
                           deviations)
                              .unsqueeze(0);
    const auto truth = next.narrow(0, static_cast<int64_t>(t), 1);
    loss += relative_errors(forecast, truth).item<double>() / 499;
    squares += weighted_square_errors(forecast, truth).item<double>() / 499;
  }
  EXPECT_NEAR(loss, marks.perfect_loss, 1e-6);
  // The exact floor is a mean over all weather; this is 499 steps of it.
  EXPECT_NEAR(std::sqrt(squares), marks.least_error, 0.05 * marks.least_error);
}

TEST_F(BuiltInData, SaysWhereItCannotBeWritten) {
  const auto file = folder_.write("a-file", "");
  setenv("WORLDSIZE_CACHE", file.c_str(), 1);
  EXPECT_THAT(error_of([] { built_in_data(kSmall); }),
              testing::AllOf(HasSubstr("a-file"), HasSubstr("WORLDSIZE_CACHE")));
}

}  // namespace
}  // namespace tasks::weather
