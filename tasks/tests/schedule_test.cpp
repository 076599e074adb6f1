// Learning rates by step, as Python's schedulers give them.
#include "tasks/schedule.hpp"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace tasks {
namespace {

class ScheduleTest : public ::testing::Test {
 protected:
  ScheduleTest()
      : optimizer_({torch::optim::OptimizerParamGroup({torch::ones({1})}),
                    torch::optim::OptimizerParamGroup(
                        {torch::ones({1})}, std::make_unique<torch::optim::SGDOptions>(0.5))},
                   torch::optim::SGDOptions(2.0)) {}

  double rate(size_t group = 0) { return optimizer_.param_groups()[group].options().get_lr(); }

  torch::optim::SGD optimizer_;
};

TEST_F(ScheduleTest, WithoutAFactorRatesStay) {
  Schedule schedule(optimizer_);
  schedule.step();
  EXPECT_EQ(schedule.steps(), 1);
  EXPECT_EQ(rate(), 2.0);
}

TEST_F(ScheduleTest, EveryGroupKeepsItsShare) {
  Schedule schedule(optimizer_, step_decay(2, 0.1));
  EXPECT_EQ(rate(), 2.0);
  schedule.step();
  EXPECT_EQ(rate(), 2.0);
  schedule.step();
  EXPECT_DOUBLE_EQ(rate(), 0.2);
  EXPECT_DOUBLE_EQ(rate(1), 0.05);
}

TEST_F(ScheduleTest, ACosineRisesFirstAndEndsAtZero) {
  Schedule schedule(optimizer_, cosine_with_warm_up(/*total=*/10, /*warm_up=*/4));
  EXPECT_DOUBLE_EQ(rate(), 2.0 / 4);
  for (int step = 0; step < 3; ++step) schedule.step();
  // (1 + cos(0.3 pi)) / 2 is less than 4 / 4.
  EXPECT_NEAR(rate(), 2 * 0.79389262614623657, 1e-15);
  for (int step = 3; step < 12; ++step) schedule.step();
  EXPECT_NEAR(rate(), 0, 1e-15);
}

// Numbers of fastai's combined_cos(0.25, 1 / 25, 1, 1e-5), as its source computes them in Python.
TEST_F(ScheduleTest, OneCycleIsFastais) {
  const auto factor = one_cycle(/*total=*/40);
  EXPECT_DOUBLE_EQ(factor(0), 1 / 25.0);
  EXPECT_DOUBLE_EQ(factor(3), 0.23786307889961295);
  EXPECT_DOUBLE_EQ(factor(10), 1);
  EXPECT_DOUBLE_EQ(factor(17), 0.8715736970145698);
  EXPECT_NEAR(factor(40), 1e-5, 1e-16);
  EXPECT_NEAR(factor(41), 1e-5, 1e-16);
}

TEST_F(ScheduleTest, ARestoredOneGoesOn) {
  Schedule schedule(optimizer_, cosine_with_warm_up(10, 0));
  for (int step = 0; step < 7; ++step) schedule.step();
  const double reached = rate();
  Schedule::Factor factor = cosine_with_warm_up(10, 0);
  torch::optim::SGD other({torch::ones({1})}, torch::optim::SGDOptions(2.0));
  Schedule resumed(other, factor);
  resumed.restore(7);
  EXPECT_EQ(other.param_groups()[0].options().get_lr(), reached);
}

}  // namespace
}  // namespace tasks
