// The task as a trainer sees it.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>
#include <numeric>

#include "data.hpp"
#include "drawn.hpp"
#include "errors.hpp"
#include "tasks/task.hpp"
#include "temporary_folder.hpp"

namespace tasks::signals {
namespace {

using testing::HasSubstr;

class SignalsTask : public testing::Test {
 protected:
  SignalsTask() { setenv("WORLDSIZE_CACHE", (folder_.path() / "cache").c_str(), 1); }
  ~SignalsTask() override { unsetenv("WORLDSIZE_CACHE"); }

  std::shared_ptr<Task> task(const std::string& yaml) {
    Options options;
    options.task = "signals";
    options.config = folder_.write("mine.yaml", "base: laptop\n" + yaml).string();
    return make_task(options);
  }

  TemporaryFolder folder_;
};

std::vector<size_t> numbers(size_t from, size_t count) {
  std::vector<size_t> all(count);
  std::iota(all.begin(), all.end(), from);
  return all;
}

// All labels of three moments, each with its probability given the values.
double least_loss_by_enumeration(const Signal& signal) {
  constexpr double kStays = 0.85, kNoise = 0.7;
  double all = 0;
  std::array<double, 3> right{};
  for (int code = 0; code < 27; ++code) {
    const std::array<int64_t, 3> labels{code / 9, code / 3 % 3, code % 3};
    double chance = 1;
    for (size_t t = 0; t < 3; ++t) {
      if (t > 0) chance *= labels[t] == labels[t - 1] ? kStays : (1 - kStays) / 2;
      const double off = (signal.values[t] - static_cast<double>(labels[t] - 1)) / kNoise;
      chance *= std::exp(-off * off / 2);
    }
    all += chance;
    for (size_t t = 0; t < 3; ++t) right[t] += labels[t] == signal.labels[t] ? chance : 0;
  }
  return -std::log(right[0] / all) - std::log(right[1] / all) - std::log(right[2] / all);
}

TEST(Signals, HaveAKnownLeastLoss) {
  int looked_at = 0;
  for (uint64_t number = 0; number < 400 && looked_at < 10; ++number) {
    const auto signal = draw(5, number, 16);
    if (signal.values.size() != 3) continue;
    ++looked_at;
    EXPECT_NEAR(least_loss(signal), least_loss_by_enumeration(signal), 1e-12);
  }
  EXPECT_EQ(looked_at, 10);
}

TEST_F(SignalsTask, HasUnequallyManyTargets) {
  const auto source = task("train_signals: 100\n")->dataset("train");
  auto dataset = source;
  std::set<int64_t> counts;
  for (size_t i = 0; i < 100; ++i) {
    const auto batch = dataset.get_batch(std::vector<size_t>{i});
    counts.insert(batch.target.count());
    EXPECT_EQ(batch.target.count(), batch.target.tensor().ne(kPad).sum().item<int64_t>());
  }
  EXPECT_GE(*counts.begin(), 4);
  EXPECT_EQ(*counts.rbegin(), 32);
  EXPECT_GT(counts.size(), 15U);
}

TEST_F(SignalsTask, IsLearnedUpToTheBestPossible) {
  torch::set_num_threads(1);
  torch::manual_seed(1);
  const auto signals = task("train_signals: 2000\n");
  const auto model = signals->make_model();
  const auto optimizer = signals->make_optimizer(model->parameters());
  constexpr size_t kSteps = 200, kBatch = 64;
  const auto schedule = signals->make_schedule(*optimizer, kSteps);
  auto train = signals->dataset("train");
  for (size_t step = 0; step < kSteps; ++step) {
    const auto batch = train.get_batch(numbers(step * kBatch % 1900, kBatch));
    optimizer->zero_grad();
    signals->loss(model->forward(batch.input), batch.target).mean().backward();
    optimizer->step();
    schedule->step();
  }
  model->eval();
  const torch::NoGradGuard no_grad;
  auto validation = signals->dataset("validation");
  const auto batch = validation.get_batch(numbers(0, 500));
  const auto score =
      signals->score(signals->loss(model->forward(batch.input), batch.target).totals());
  const double best = signals->baselines()[1].second;
  EXPECT_GT(double(score), best);
  EXPECT_LT(double(score), best + 0.05);
  EXPECT_GT(score.metric("accuracy"), 0.7);
}

// A buffer that no gradient changes: ranks that share no buffers compute differently with it.
TEST_F(SignalsTask, MayHavePositionsThatAreDrawnWithTheWeights) {
  const std::string yaml = "train_signals: 10\nevaluation_signals: 5\n";
  const auto positions_of = [&](const std::string& size, uint64_t seed) {
    torch::manual_seed(seed);
    const auto buffers = task(yaml + "positions: " + size + "\n")->make_model()->named_buffers();
    const auto* found = buffers.find("moments.positions");
    return found ? *found : torch::Tensor();
  };
  EXPECT_FALSE(positions_of("0", 1).defined());
  const auto drawn = positions_of("0.5", 1);
  EXPECT_EQ(drawn.sizes(), torch::IntArrayRef({32}));
  EXPECT_FALSE(drawn.requires_grad());
  EXPECT_TRUE(torch::equal(drawn, positions_of("0.5", 1)));
  EXPECT_FALSE(torch::equal(drawn, positions_of("0.5", 2)));
  EXPECT_TRUE(torch::allclose(2 * drawn, positions_of("1", 1)));

  const auto signals = task(yaml + "positions: 1\n");
  const auto model = signals->make_model();
  const auto batch = signals->dataset("train").get_batch({0, 1});
  const auto before = model->forward(batch.input);
  model->named_buffers()["moments.positions"].zero_();
  EXPECT_FALSE(torch::allclose(before, model->forward(batch.input)));
}

TEST_F(SignalsTask, NamesADamagedFile) {
  const auto yaml = "train_signals: 10\nevaluation_signals: 5\n";
  task(yaml);
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(folder_.path() / "cache")) {
    if (entry.path().filename() == "train.safetensors") std::ofstream(entry.path()) << "cut";
  }
  EXPECT_THAT(error_of([&] { task(yaml)->dataset("train"); }),
              testing::AllOf(HasSubstr("train.safetensors"), HasSubstr("Fix: delete the folder")));
}

}  // namespace
}  // namespace tasks::signals
