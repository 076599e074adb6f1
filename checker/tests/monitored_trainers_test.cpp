// Trainers with --monitor: the same run as without, and records that agree with what it did.
#include <gmock/gmock.h>

#include <numeric>

#include "monitor/figures.hpp"
#include "monitor/page.hpp"
#include "monitor_browser.hpp"
#include "trainer_fixture.hpp"

namespace checker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::solution;
using testing::TrainerTest;

constexpr double kSlack = 1e-5;  // seconds: steps are kept in single precision

TEST_F(TrainerTest, AMonitoredRunIsTheSameRunToTheLastBit) {
  for (const size_t world_size : {1U, 2U}) {
    const auto plain = run(solution(6), world_size, {"--max-steps", "8"});
    ASSERT_TRUE(plain.result.success()) << plain.everything;
    EXPECT_FALSE(std::filesystem::exists(output() / "monitor"));
    const auto model = read_file(output() / "model-final.safetensors");
    const auto monitored = run(solution(6), world_size, {"--max-steps", "8", "--monitor"});
    ASSERT_TRUE(monitored.result.success()) << monitored.everything;
    EXPECT_EQ(monitored.everything, plain.everything);
    EXPECT_EQ(read_file(output() / "model-final.safetensors"), model);
    std::filesystem::remove_all(output() / "monitor");
  }
}

TEST_F(TrainerTest, RecordsAgreeWithWhatTheRunDid) {
  const auto outcome = run(solution(6), 2, {"--max-steps", "8", "--seed", "5", "--monitor"});
  ASSERT_TRUE(outcome.result.success()) << outcome.everything;
  const auto recorded = monitor::load_run(output());
  ASSERT_EQ(recorded.ranks.size(), 2U);
  EXPECT_TRUE(recorded.ended());
  EXPECT_EQ(recorded.remarks.size(), 0U);
  for (const auto& rank : recorded.ranks) {
    ASSERT_EQ(rank.steps.size(), 8U);
    double loss = 0;
    for (const auto& step : rank.steps) {
      EXPECT_EQ(step.targets, 48U);  // 6 samples of 8 words
      EXPECT_NEAR(step.learning_rate, 2e-3, 1e-9);
      const double phases = std::accumulate(step.phases.begin(), step.phases.end(), 0.0);
      EXPECT_LE(phases, step.duration() + kSlack);
      for (const auto phase : step.phases) EXPECT_GT(phase, 0);
      EXPECT_LE(step.collectives, step.duration() + kSlack);
      loss += step.loss;
    }
    EXPECT_GT(loss / 8, 1);  // nats: far from learnt
    EXPECT_LT(loss / 8, 8);
    EXPECT_EQ(rank.device, "cpu");
    EXPECT_EQ(rank.configuration.at("seed"), "5");
    ASSERT_TRUE(rank.memory);
    EXPECT_EQ(rank.memory->gradients, rank.memory->parameters);
    EXPECT_EQ(rank.memory->optimizer, 2 * rank.memory->parameters);  // AdamW's two moments
    EXPECT_GT(rank.memory->activations, 0U);
    EXPECT_GE(rank.process.size(), 1U);
    ASSERT_EQ(rank.gradients.size(), 1U);
    const auto& gradients = rank.gradients[0].sample;
    EXPECT_EQ(gradients.step, 4U);
    const auto elements =
        std::accumulate(std::begin(gradients.bins), std::end(gradients.bins), gradients.zeros);
    EXPECT_EQ(elements * sizeof(float), rank.memory->gradients);
    EXPECT_GT(gradients.sum_of_squares, 0);
    EXPECT_LE(gradients.sum_of_squares, gradients.sum * gradients.largest);
    // They are averaged: the same on all ranks.
    EXPECT_EQ(gradients.sum, recorded.ranks[0].gradients.at(0).sample.sum);
    size_t evaluations = 0;
    for (const auto& span : rank.spans) evaluations += span.phase == monitor::Phase::evaluation;
    EXPECT_EQ(evaluations, 2U);  // of the validation and of the test split
  }
  // The printed loss is the mean of all ranks' steps.
  double sum = 0;
  for (const auto& rank : recorded.ranks) {
    for (const auto& step : rank.steps) sum += step.loss;
  }
  EXPECT_NEAR(sum / 16, outcome.numbers_after("training loss ").at(0), 1e-4);
  const auto figures = monitor::figures_of(recorded);
  EXPECT_GT(figures.compared, 8U);
  EXPECT_EQ(figures.steps, 8U);
  ASSERT_EQ(figures.evaluations.size(), 2U);
  const auto &test = figures.evaluations[0], &validation = figures.evaluations[1];
  EXPECT_EQ(test.split, "test");
  EXPECT_NEAR(test.loss, outcome.numbers_after("test loss: ").at(0), 1e-4);
  EXPECT_EQ(validation.split, "validation");
  EXPECT_NEAR(validation.loss, outcome.numbers_after("validation loss ").at(0), 1e-4);
  EXPECT_EQ(figures.best_validation, validation.loss);
  EXPECT_EQ(validation.step, 8);
  EXPECT_LT(validation.time, test.time);
  EXPECT_THAT(monitor::to_page(recorded, figures), HasSubstr("In the middle of the run"));
}

TEST_F(TrainerTest, RecordsHoldTheMetrics) {
  const auto outcome = run(solution(6), 2,
                           {"--task", "points", "--config", "small", "--max-steps", "4", "--device",
                            "cpu", "--monitor"});
  ASSERT_TRUE(outcome.result.success()) << outcome.everything;
  const auto recorded = monitor::load_run(output());
  double sum = 0, count = 0;
  for (const auto& rank : recorded.ranks) {
    ASSERT_EQ(rank.measured.size(), 4U);  // two metrics of two splits
    const auto& metric = rank.measured.back().sample;
    EXPECT_EQ(metric.name, "test/RMSE");
    EXPECT_EQ(metric.step, 4U);
    EXPECT_TRUE(metric.root);
    sum += metric.sum;
    count += metric.count;
  }
  EXPECT_NEAR(std::sqrt(sum / count), outcome.numbers_after("RMSE ").at(1), 5e-4);
}

TEST_F(TrainerTest, ABrowserShowsThePageOfARun) {
  if (!testing::has_browser()) GTEST_SKIP() << "no chromium";
  for (const size_t world_size : {1U, 2U}) {
    const auto outcome = run(solution(6), world_size, {"--max-steps", "8", "--monitor"});
    ASSERT_TRUE(outcome.result.success()) << outcome.everything;
    const auto recorded = monitor::load_run(output());
    const auto page = monitor::to_page(recorded, monitor::figures_of(recorded));
    const auto seen = testing::run_seen_by_browser(page, 1280);
    EXPECT_THAT(seen, HasSubstr("rows " + std::to_string(world_size) + ", tip backward"));
    EXPECT_THAT(seen, HasSubstr("back true, wide true, overflow false, requests 0 end"));
    EXPECT_THAT(seen, Not(HasSubstr("CONSOLE")));
    std::filesystem::remove_all(output() / "monitor");
  }
}

TEST_F(TrainerTest, CheckpointsAreNoPartOfSteps) {
  const auto outcome =
      run(solution(7), 1, {"--max-steps", "6", "--checkpoint-every", "2", "--monitor"});
  ASSERT_TRUE(outcome.result.success()) << outcome.everything;
  const auto recorded = monitor::load_run(output());
  size_t checkpoints = 0;
  for (const auto& span : recorded.ranks[0].spans) {
    if (span.phase != monitor::Phase::checkpoint) continue;
    ++checkpoints;
    for (const auto& step : recorded.ranks[0].steps) {
      EXPECT_TRUE(step.end <= span.begin + kSlack || step.begin >= span.end - kSlack);
    }
  }
  EXPECT_EQ(checkpoints, 2U);  // after the last step there is none
}

TEST_F(TrainerTest, RanksThatTrainAloneAreSeenAsSuch) {
  const auto outcome = run(solution(1), 2, {"--max-steps", "6", "--monitor"});
  ASSERT_TRUE(outcome.result.success()) << outcome.everything;
  const auto recorded = monitor::load_run(output());
  EXPECT_EQ(recorded.ranks.size(), 2U);
  EXPECT_THAT(monitor::to_page(recorded, monitor::figures_of(recorded)),
              HasSubstr("data-id=\"nothing_exchanged\""));
}

TEST_F(TrainerTest, ARunGoesOnWhereItCannotBeMonitored) {
  write_file(output() / "monitor", "in the way");
  const auto outcome = run(solution(6), 1, {"--max-steps", "2", "--monitor"});
  EXPECT_TRUE(outcome.result.success()) << outcome.everything;
  EXPECT_THAT(outcome.everything, HasSubstr("warning: --monitor: "));
  EXPECT_THAT(outcome.everything, HasSubstr("test loss: "));
}

}  // namespace
}  // namespace checker
