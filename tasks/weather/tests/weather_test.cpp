// The task as a trainer sees it.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cmath>
#include <numbers>

#include "errors.hpp"
#include "tasks/registry.hpp"
#include "tasks/task.hpp"
#include "temporary_folder.hpp"
#include "written.hpp"

namespace tasks::weather {

Entry entry();

namespace {

using testing::AllOf;
using testing::HasSubstr;

class WeatherTest : public testing::Test {
 protected:
  WeatherTest() { setenv("WORLDSIZE_CACHE", (folder_.path() / "cache").c_str(), 1); }
  ~WeatherTest() override { unsetenv("WORLDSIZE_CACHE"); }

  Options options(const std::string& yaml) const {
    Options options;
    options.task = "weather";
    options.config = folder_.write("mine.yaml", "base: laptop\n" + yaml).string();
    return options;
  }

  TemporaryFolder folder_;
};

const std::string small =
    "planet_height: 8\nplanet_width: 16\nplanet_degree: 3\nplanet_steps: 400\n"
    "planet_held_out: 50\npatch: 2\nembedding: 32\nheads: 2\nlayers: 1\nwarm_up_steps: 10\n"
    "learning_rate: 6e-3\n";

double mark(const Task& task, const std::string& name) {
  for (const auto& [key, value] : task.baselines()) {
    if (key == name) return value;
  }
  return NAN;
}

// In batches of so many samples: totals add up exactly.
Score evaluate(const Task& task, Model& model, size_t batch_size) {
  const torch::NoGradGuard no_grad;
  model.eval();
  auto dataset = task.dataset("validation");
  auto totals = task.no_totals(torch::kCPU);
  for (size_t first = 0; first < *dataset.size(); first += batch_size) {
    std::vector<size_t> indices;
    for (size_t i = first; i < std::min(first + batch_size, *dataset.size()); ++i) {
      indices.push_back(i);
    }
    const auto batch = dataset.get_batch(indices);
    totals += task.loss(model.forward(batch.input), batch.target).totals();
  }
  return task.score(totals);
}

void train(const Task& task, Model& model, int64_t steps) {
  const auto optimizer = task.make_optimizer(model.parameters());
  const auto schedule = task.make_schedule(*optimizer, steps);
  auto dataset = task.dataset("train");
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<size_t> indices(16);
    for (size_t i = 0; i < 16; ++i) indices[i] = (size_t(step) * 16 + i) * 7919 % *dataset.size();
    const auto batch = dataset.get_batch(indices);
    optimizer->zero_grad();
    task.loss(model.forward(batch.input), batch.target).mean().backward();
    optimizer->step();
    schedule->step();
  }
}

TEST_F(WeatherTest, LearnsMoreThanPersistenceAndNotMoreThanThereIs) {
  torch::manual_seed(0);
  const auto task = make_task(options(small));
  const auto model = task->make_model();
  EXPECT_NEAR(double(evaluate(*task, *model, 32)), 1, 0.1);  // it knows nothing yet
  train(*task, *model, 150);
  const auto score = evaluate(*task, *model, 32);
  EXPECT_LT(double(score), mark(*task, "persistence"));
  EXPECT_GT(double(score), mark(*task, "best forecast"));
  EXPECT_GT(score.metric("RMSE u10"), 0.2);
  EXPECT_LT(score.metric("RMSE u10"), 0.6);
}

TEST_F(WeatherTest, DescribesAScoreByWhatIsKnown) {
  const auto task = make_task(options(small));
  EXPECT_EQ(mark(*task, "climatology"), 1);
  EXPECT_THAT(task->describe(Score(0.4, {{"RMSE u10", 0.3}})),
              testing::MatchesRegex(
                  "0.400 relative L2 \\(climatology 1, persistence 0\\.[0-9]+, best forecast "
                  "0\\.[0-9]+; of RMSE u10: climatology 1, persistence 0\\.[0-9]+, best forecast "
                  "0\\.241\\), RMSE u10 0.3"));
  // Those of a longer forecast nobody worked out.
  EXPECT_EQ(make_task(options(small + "lead: 2\n"))->describe(0.4),
            "0.400 relative L2 (climatology 1)");
}

TEST_F(WeatherTest, ScoresAreTheSameInAnyBatches) {
  torch::manual_seed(0);
  auto fp64 = options(small);
  fp64.precision = torch::kFloat64;
  const auto task = make_task(fp64);
  const auto model = task->make_model();
  train(*task, *model, 3);
  const auto whole = evaluate(*task, *model, 49);
  for (const size_t batch_size : {1, 7, 32}) {
    const auto parts = evaluate(*task, *model, batch_size);
    EXPECT_NEAR(double(parts), double(whole), 1e-13);
    EXPECT_NEAR(parts.metric("RMSE u10"), whole.metric("RMSE u10"), 1e-13);
  }
}

TEST_F(WeatherTest, LossAndMetricAreSumsOverSamples) {
  const auto task = make_task(options(small));
  const auto target = torch::randn({3, 20, 8, 16}, torch::kDouble);
  const auto output = torch::randn({3, 20, 8, 16}, torch::kDouble);
  const torch::NoGradGuard no_grad;
  const auto loss = task->loss(output, Target(target, 3));
  double sum = 0, squares = 0, weights = 0;
  for (int64_t i = 0; i < 3; ++i) {
    sum += ((output[i] - target[i]).norm() / target[i].norm()).item<double>();
    for (int64_t row = 0; row < 8; ++row) {
      const double weight = std::cos((90 - double(row) * 180 / 7) * std::numbers::pi / 180);
      squares += weight * (output[i][0][row] - target[i][0][row]).square().mean().item<double>();
      if (i == 0) weights += weight;
    }
  }
  EXPECT_EQ(loss.count, 3);
  EXPECT_NEAR(loss.sum.item<double>(), sum, 1e-12);
  EXPECT_NEAR(task->score(loss.totals()).metric("RMSE u10"), std::sqrt(squares / weights / 3),
              1e-12);
}

TEST_F(WeatherTest, ReadsAFolderWithItsOwnChannels) {
  write_all(folder_.path());
  auto with_data = options("patch: 2\nembedding: 8\nheads: 2\nlayers: 1\n");
  with_data.data = folder_.path();
  const auto task = make_task(with_data);
  EXPECT_TRUE(std::isnan(mark(*task, "persistence")));
  EXPECT_EQ(*task->dataset("train").size(), 5);
  EXPECT_EQ(task->make_model()->named_parameters()["patch_embed.weight"].sizes(),
            (std::vector<int64_t>{8, 2, 2, 2}));
  with_data.config = folder_.write("other.yaml", "base: laptop\npatch: 3\n").string();
  EXPECT_THAT(
      error_of([&] { make_task(with_data); }),
      AllOf(HasSubstr("1990.h5"), HasSubstr("4 x 8 does not divide into patches of 3 x 3")));
  write_fields(folder_.path() / "test/1993.h5", 3, {3, 2, 4, 16});
  EXPECT_THAT(error_of([&] { task->dataset("test"); }),
              AllOf(HasSubstr("1993.h5"), HasSubstr("2 channels of 4 x 16")));
}

TEST_F(WeatherTest, RefusesSettingsThatDoNotFit) {
  EXPECT_THAT(error_of([&] { make_task(options("heads: 5\n")); }),
              HasSubstr("96 is not a multiple of the 5 heads"));
  EXPECT_THAT(error_of([&] { make_task(options("lead: 0\n")); }), HasSubstr("mine.yaml:2: lead"));
}

TEST_F(WeatherTest, TrainsInBf16) {
  torch::manual_seed(0);
  auto bf16 = options(small);
  bf16.products = Products::bf16;
  const auto task = make_task(bf16);
  const auto model = task->make_model();
  EXPECT_EQ(model->parameters()[0].dtype(), torch::kFloat32);
  train(*task, *model, 5);
  EXPECT_LT(double(evaluate(*task, *model, 32)), 1.1);
}

// The rate grows with the root of the samples, and all runs see as many of them.
TEST_F(WeatherTest, ConfigurationsFollowTheBatchSize) {
  const auto task = entry();
  for (const int64_t batch : {16, 32, 64, 128, 256, 512, 1024, 2048}) {
    const auto config = Config::load("bs" + std::to_string(batch), task);
    EXPECT_NEAR(config.real("learning_rate", 0, 1), 5e-4 * std::sqrt(double(batch) / 16), 1e-8);
    EXPECT_EQ(config.integer("batch_size", 1, 4096), 16);
    EXPECT_EQ(config.integer("max_steps", 1, 30'000), 30'000 * 16 / batch);
    EXPECT_EQ(config.integer("warm_up_steps", 0, 30'000), 30'000 * 16 / batch / 20);
    EXPECT_EQ(config.integer("embedding", 1, 1000), 384);
  }
}

}  // namespace
}  // namespace tasks::weather
