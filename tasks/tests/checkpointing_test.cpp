#include "tasks/checkpointing.hpp"

#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <csignal>

#include "errors.hpp"
#include "temporary_folder.hpp"

namespace tasks {
namespace {

using testing::HasSubstr;

constexpr size_t samples = 40;
const torch::Tensor no_totals = torch::zeros({2}, torch::kDouble);

// A program of one rank that saves every third step, in batches of four.
struct Trainer {
  explicit Trainer(const Options& given, size_t train_size = samples)
      : options(given),
        sampler(train_size, {.num_replicas = 1, .rank = 0}),
        progress(options, train_size),
        checkpoints(options) {}

  int64_t restore() {
    return checkpoints.restore(*model, optimizer, schedule, sampler, progress, best);
  }
  // One step as a trainer makes it, whose loss is 2 over 4 targets.
  void step(torch::Tensor& totals) {
    sampler.next(4);
    const Loss loss{torch::tensor(2.0), 4};
    totals += loss.totals();
    optimizer.step();
    schedule.step();
    if (progress.step(loss)) checkpoints.step(totals);
  }

  const Options& options;
  torch::nn::Linear model{2, 2};
  torch::optim::SGD optimizer{model->parameters(), 0.1};
  Schedule schedule{optimizer, step_decay(5, 0.5)};
  distributed_utils::DistributedSampler sampler;
  Progress progress;
  Score best = 7;
  Checkpointing checkpoints;
};

class CheckpointingTest : public testing::Test {
 protected:
  CheckpointingTest() {
    options.epochs = 3;
    options.batch_size = 4;
    options.checkpoint_every = 3;
    options.output = folder.path();
  }

  // Fourteen steps: an epoch of ten, and four; the last that was saved is the twelfth.
  void interrupted_run() {
    Trainer run(options);
    EXPECT_EQ(run.restore(), 0);
    for (const int steps : {10, 4}) {
      auto totals = run.checkpoints.begin_epoch(no_totals);
      EXPECT_EQ(totals.sum().item<double>(), 0);
      run.sampler.reset();
      for (int step = 0; step < steps; ++step) run.step(totals);
      run.best = Score(5, {{"accuracy", 0.25}, {"top five", 0.5}});
    }
    torch::nn::init::constant_(run.model->weight, 9);
    options.resume = true;
  }

  const TemporaryFolder folder;
  Options options;
};

TEST_F(CheckpointingTest, EverythingThatARunHasIsThereAgain) {
  interrupted_run();
  Trainer run(options);
  EXPECT_EQ(run.restore(), 1);
  EXPECT_EQ(run.progress.steps(), 12);
  EXPECT_EQ(run.best, 5);
  EXPECT_EQ(run.best.metrics().size(), 2U);
  EXPECT_EQ(run.best.metric("top five"), 0.5);
  EXPECT_EQ(run.schedule.steps(), 12);
  EXPECT_DOUBLE_EQ(run.optimizer.param_groups()[0].options().get_lr(), 0.1 / 4);
  auto totals = run.checkpoints.begin_epoch(no_totals);
  EXPECT_TRUE(torch::equal(totals, torch::tensor({4.0, 8.0}, torch::kDouble))) << totals;
  run.sampler.reset();
  EXPECT_EQ(run.sampler.next(samples)->size(), samples - 2 * 4);
  EXPECT_EQ(run.checkpoints.begin_epoch(no_totals).sum().item<double>(), 0);
}

/// A scaler after so many steps, the first of which was skipped.
distributed_utils::GradScaler scaler_after(int steps) {
  distributed_utils::GradScaler scaler({.init_scale = 640, .growth_interval = 7});
  auto weight = torch::ones({1}).requires_grad_();
  torch::optim::SGD optimizer({weight}, 0.5);
  for (int step = 0; step < steps; ++step) {
    optimizer.zero_grad();
    scaler.scale((weight * (step == 0 ? INFINITY : 1)).sum()).backward();
    scaler.step(optimizer);
    scaler.update();
  }
  return scaler;
}

TEST_F(CheckpointingTest, KeepsAScalersStateIfAsked) {
  auto scaler = scaler_after(4), fresh = scaler_after(0);
  const auto take_three_steps = [&](Trainer& run) {
    run.restore();
    auto totals = run.checkpoints.begin_epoch(no_totals);
    for (int step = 0; step < 3; ++step) run.step(totals);
  };
  {
    Trainer run(options);
    run.checkpoints.keep(scaler);
    EXPECT_EQ(scaler.get_scale(), 320) << "a run that starts anew leaves it alone";
    take_three_steps(run);
  }
  options.resume = true;
  Trainer run(options);
  run.checkpoints.keep(fresh);
  EXPECT_EQ(fresh.get_scale(), 320);
  EXPECT_EQ(fresh.get_growth_tracker(), 3);
  EXPECT_EQ(fresh.state_dict().at("growth_interval").item<int64_t>(), 7);
  options.resume = false;
  options.output = folder.path() / "without";
  std::filesystem::create_directories(options.output);
  {
    Trainer without(options);
    take_three_steps(without);
  }
  options.resume = true;
  Trainer late(options);
  auto unchanged = scaler_after(1);
  late.checkpoints.keep(unchanged);
  EXPECT_EQ(unchanged.get_scale(), 320) << "the run that was saved had none";
}

TEST_F(CheckpointingTest, PositionsCountFromTheStartOfTheirOwnEpoch) {
  interrupted_run();
  {
    Trainer run(options);
    run.restore();
    for (const int steps : {8, 2}) {  // the rest of the second epoch, then of the third
      auto totals = run.checkpoints.begin_epoch(no_totals);
      run.sampler.reset();
      for (int step = 0; step < steps; ++step) run.step(totals);
    }
  }
  Trainer run(options);
  EXPECT_EQ(run.restore(), 2);
  EXPECT_EQ(run.progress.steps(), 21);
  run.checkpoints.begin_epoch(no_totals);
  run.sampler.reset();
  EXPECT_EQ(run.sampler.next(samples)->size(), samples - 4);
}

TEST_F(CheckpointingTest, WithoutTheOptionsNothingIsWrittenAndSignalsAreLeftAlone) {
  options.checkpoint_every = 0;
  Trainer run(options);
  EXPECT_EQ(run.restore(), 0);
  auto totals = run.checkpoints.begin_epoch(no_totals);
  for (int step = 0; step < 4; ++step) run.step(totals);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EXIT(std::raise(SIGUSR1), testing::KilledBySignal(SIGUSR1), "");
}

TEST_F(CheckpointingTest, ASignalSavesAndStopsAfterTheStepThatRuns) {
  options.checkpoint_every = 1000;
  {
    Trainer run(options);
    run.restore();
    auto totals = run.checkpoints.begin_epoch(no_totals);
    run.step(totals);
    std::raise(SIGTERM);
    try {
      run.step(totals);
      ADD_FAILURE() << "it went on";
    } catch (const Stopped& stopped) {
      EXPECT_STREQ(stopped.what(), "stopped after step 2 and saved; --resume continues from there");
    }
  }
  options.resume = true;
  Trainer run(options);
  run.restore();
  EXPECT_EQ(run.progress.steps(), 2);
}

TEST_F(CheckpointingTest, ACheckpointOfAnotherRunIsRefused) {
  interrupted_run();
  EXPECT_THAT(error_of([&] { Trainer(options, samples + 1).restore(); }),
              HasSubstr("had 40 training samples, this one has 41"));
  options.seed = 3;
  EXPECT_THAT(error_of([&] { Trainer(options).restore(); }),
              HasSubstr("had the seed 0, this one has 3; use --seed 0"));
}

TEST_F(CheckpointingTest, ASaveThatFailsDoesNotEndTheRun) {
  Trainer run(options);
  run.restore();
  auto totals = run.checkpoints.begin_epoch(no_totals);
  std::ofstream(folder.path() / "checkpoints") << "a file where the folder should be";
  testing::internal::CaptureStderr();
  for (int step = 0; step < 4; ++step) run.step(totals);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("warning: no checkpoint: "));
  EXPECT_EQ(run.progress.steps(), 4);
}

}  // namespace
}  // namespace tasks
