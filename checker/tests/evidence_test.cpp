#include "evidence/run.hpp"

#include <gmock/gmock.h>

#include "log_writer.hpp"

namespace checker {
namespace {

namespace format = instrumentation;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Fingerprints of what a sample consists of.
uint64_t input_of(uint64_t split, uint64_t id) { return 1000 * (split + 1) + id; }
uint64_t target_of(uint64_t split, uint64_t id) { return 7000 * (split + 1) + id; }

void fetch(LogWriter& log, uint64_t split, uint64_t first, uint64_t second) {
  log.add(Kind::fetch, split, first, second);
  log.add(Kind::samples, format::SamplesRecord{.split = split, .size = 8},
          format::SampleRecord{first, input_of(split, first), target_of(split, first)},
          format::SampleRecord{second, input_of(split, second), target_of(split, second)});
}

void forward(LogWriter& log, uint64_t split, uint64_t first, uint64_t second) {
  log.add(Kind::forward, format::ForwardRecord{.training = 1, .gradients = 1},
          input_of(split, first), input_of(split, second));
}

void loss(LogWriter& log, uint64_t split, uint64_t first, uint64_t second, double sum,
          bool gradients) {
  log.add(Kind::targets, target_of(split, first), target_of(split, second));
  log.add(Kind::loss, sum, 2.0, gradients ? 1.0 : 0.0);
}

void use(LogWriter& log, uint64_t split, uint64_t first, uint64_t second, double sum,
         bool gradients) {
  forward(log, split, first, second);
  loss(log, split, first, second, sum, gradients);
}

void model(LogWriter& log) { log.add(Kind::model, LogWriter::tensor("w", 7, 1)); }

void step(LogWriter& log, double value, double gradient) {
  log.add(Kind::stepping, uint64_t{0}, uint64_t{0});
  log.add(Kind::values, value).add(Kind::gradients, gradient);
}

// Two epochs of two batches, and half-way through each another validation, if there is one.
RankSeen two_epochs(bool half_way) {
  LogWriter log;
  model(log);
  uint64_t losses = 0;
  for (const auto& order : {std::vector<uint64_t>{4, 5, 6, 7}, {6, 4, 7, 5}}) {
    for (size_t at = 0; at < order.size(); at += 2) {
      fetch(log, 0, order[at], order[at + 1]);
      use(log, 0, order[at], order[at + 1], static_cast<double>(at + 1), true);
      log.add(Kind::backward, losses++);
      step(log, 0.5, 0.1 * static_cast<double>(losses));
      if (at > 0 || !half_way) continue;
      fetch(log, 1, 0, 1);
      use(log, 1, 0, 1, 3, false);
      ++losses;
    }
    fetch(log, 1, 0, 1);
    use(log, 1, 0, 1, 4, false);
    ++losses;
  }
  log.add(Kind::reported, 1.25).add(Kind::exit);
  return read(log, 2);
}

TEST(Evidence, PassesLossesAndStepsComeInTheirOrder) {
  const auto rank = two_epochs(false);
  ASSERT_EQ(rank.passes.size(), 4U);
  ASSERT_EQ(rank.trainings().size(), 2U);
  EXPECT_EQ(rank.trainings()[1]->epoch, 1U);
  EXPECT_THAT(rank.trainings()[1]->ids(), ElementsAre(6, 4, 7, 5));
  EXPECT_EQ(rank.trainings()[1]->batches[1].loss_sum, 3.0);
  EXPECT_EQ(rank.trainings()[1]->batches[1].step, 3U);
  EXPECT_EQ(rank.evaluations(Split::validation)[1]->epoch, 2U);
  EXPECT_EQ(rank.evaluations(Split::validation)[1]->batches[0].step, std::nullopt);
  EXPECT_EQ(rank.steps.size(), 4U);
  EXPECT_THAT(rank.steps[0].gradients, ElementsAre(0.1));
  EXPECT_THAT(rank.reported, ElementsAre(1.25));
  EXPECT_TRUE(rank.left_regularly);
}

TEST(Evidence, AValidationHalfWayDoesNotEndTheEpoch) {
  const auto rank = two_epochs(true);
  ASSERT_EQ(rank.trainings().size(), 2U);
  EXPECT_THAT(rank.trainings()[0]->ids(), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(rank.evaluations(Split::validation).size(), 4U);
}

// Sample by sample, and the last one of the share fills no batch of two: the next epoch begins with
// it.
TEST(Evidence, AnEpochEndsThoughItsNextSampleWouldFit) {
  std::vector<BatchSeen> batches;
  const auto use_one = [&](Split split, uint64_t id) {
    auto& batch = batches.emplace_back();
    batch.split = split;
    batch.ids = {id};
    batch.backward = split == Split::train;
  };
  for (const uint64_t id : {1, 2, 3, 4}) use_one(Split::train, id);
  use_one(Split::validation, 1);
  for (const uint64_t id : {5, 3, 1, 4}) use_one(Split::train, id);
  const auto passes = passes_of(batches, {10, 2, 2}, 2);
  ASSERT_EQ(passes.size(), 3U);
  EXPECT_THAT(passes[0].ids(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(passes[2].ids(), ElementsAre(5, 3, 1, 4));
}

// A rank that leaves the evaluation to others still reports its epoch.
TEST(Evidence, AnEpochEndsWithAReportToo) {
  std::vector<BatchSeen> batches(5);
  for (size_t i = 0; i < batches.size(); ++i) batches[i] = {.ids = {i + 1}, .backward = true};
  EXPECT_EQ(passes_of(batches, {6}, 2).size(), 1U);
  batches[3].after_report = true;
  const auto passes = passes_of(batches, {6}, 2);
  ASSERT_EQ(passes.size(), 2U);
  EXPECT_THAT(passes[1].ids(), ElementsAre(4, 5));
  EXPECT_EQ(passes_of(batches, {12}, 2).size(), 1U) << "half-way";
}

// With workers, batches are fetched ahead and in any order.
TEST(Evidence, SamplesAreRecognisedByTheirValues) {
  LogWriter log;
  fetch(log, 0, 3, 4);
  fetch(log, 0, 1, 2);
  use(log, 0, 1, 2, 10, false);
  use(log, 0, 3, 4, 20, false);
  const auto rank = read(log);
  ASSERT_EQ(rank.passes.size(), 1U);
  EXPECT_THAT(rank.passes[0].ids(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(rank.passes[0].batches[0].loss_sum, 10);
  EXPECT_EQ(rank.passes[0].batches[1].loss_sum, 20);
}

TEST(Evidence, WhatIsFetchedAndNotUsedIsNoPass) {
  LogWriter log;
  fetch(log, 0, 1, 2);
  fetch(log, 1, 3, 4);
  use(log, 1, 3, 4, 30, false);
  const auto rank = read(log);
  ASSERT_EQ(rank.passes.size(), 1U);
  EXPECT_EQ(rank.passes[0].split, Split::validation);
  EXPECT_EQ(rank.fetches.size(), 2U);
}

TEST(Evidence, WhatIsKeptMayBeUsedAgain) {
  LogWriter log;
  model(log);
  fetch(log, 1, 1, 2);  // all of a split, for later
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    fetch(log, 0, 1, 2);
    use(log, 0, 1, 2, 5, true);
    log.add(Kind::backward, 2 * epoch);
    step(log, 0.5, 0.1);
    use(log, 1, 1, 2, 7, false);
  }
  const auto rank = read(log, 4);
  ASSERT_EQ(rank.evaluations(Split::validation).size(), 2U);
  EXPECT_EQ(rank.evaluations(Split::validation)[1]->batches[0].loss_sum, 7);
  EXPECT_EQ(rank.evaluations(Split::validation)[1]->epoch, 2U);
}

TEST(Evidence, OneLossOfSeveralForwardPasses) {
  LogWriter log;
  fetch(log, 1, 1, 2);
  fetch(log, 1, 3, 4);
  forward(log, 1, 1, 2);
  forward(log, 1, 3, 4);
  log.add(Kind::targets, target_of(1, 1), target_of(1, 2), target_of(1, 3), target_of(1, 4));
  log.add(Kind::loss, 5.0, 4.0, 0.0);
  const auto rank = read(log);
  ASSERT_EQ(rank.passes.size(), 1U);
  EXPECT_THAT(rank.passes[0].ids(), ElementsAre(1, 2, 3, 4));
}

TEST(Evidence, SamplesThatNobodyFetchedAreNotKnown) {
  LogWriter log;
  fetch(log, 1, 1, 2);
  use(log, 1, 5, 6, 5, false);
  const auto rank = read(log);
  ASSERT_EQ(rank.passes.size(), 1U);
  EXPECT_THAT(rank.passes[0].ids(), IsEmpty());
}

TEST(Evidence, ALossWithoutBackwardIsNoTraining) {
  LogWriter log;
  model(log);
  fetch(log, 0, 1, 2);
  use(log, 0, 1, 2, 9, true);  // to try the model out, gradients on
  use(log, 0, 1, 2, 1, true);
  log.add(Kind::backward, uint64_t{1});
  step(log, 0.5, 0.1);
  fetch(log, 0, 3, 4);
  use(log, 0, 3, 4, 2, false);
  const auto rank = read(log);
  ASSERT_EQ(rank.trainings().size(), 1U);
  ASSERT_EQ(rank.trainings()[0]->batches.size(), 1U);
  EXPECT_EQ(rank.trainings()[0]->batches[0].loss_sum, 1);
  EXPECT_EQ(rank.evaluations(Split::train).size(), 2U);
}

TEST(Evidence, ARankThatIsKilledBeforeBackwardHasNotEvaluated) {
  const auto rank_that = [](bool left) {
    LogWriter log;
    model(log);
    fetch(log, 0, 1, 2);
    use(log, 0, 1, 2, 9, true);
    log.add(Kind::backward, uint64_t{0});
    step(log, 0.5, 0.1);
    fetch(log, 0, 3, 4);
    use(log, 0, 3, 4, 2, true);
    if (left) log.add(Kind::exit);
    return read(log);
  };
  EXPECT_EQ(rank_that(false).passes.size(), 1U);
  EXPECT_EQ(rank_that(true).evaluations(Split::train).size(), 1U);
}

TEST(Evidence, SeveralBatchesMayLeadToOneStep) {
  LogWriter log;
  model(log);
  for (uint64_t batch = 0; batch < 2; ++batch) {
    fetch(log, 0, 2 * batch, 2 * batch + 1);
    use(log, 0, 2 * batch, 2 * batch + 1, 1, true);
    log.add(Kind::backward, batch);
  }
  step(log, 0.5, 0.1);
  const auto rank = read(log);
  ASSERT_EQ(rank.trainings().size(), 1U);
  for (const auto& batch : rank.trainings()[0]->batches) EXPECT_EQ(batch.step, 0U);
}

TEST(Evidence, SeveralOptimizersMakeOneStep) {
  LogWriter log;
  log.add(Kind::model, LogWriter::tensor("a", 7, 1), LogWriter::tensor("b", 7, 1));
  for (uint64_t batch = 0; batch < 2; ++batch) {
    fetch(log, 0, 2 * batch, 2 * batch + 1);
    use(log, 0, 2 * batch, 2 * batch + 1, 1, true);
    log.add(Kind::backward, batch);
    for (uint64_t place = 0; place < 2; ++place) {
      log.add(Kind::stepping, uint64_t{0}, place);
      log.add(Kind::learning_rates, 0.5);
      log.add(Kind::values, place == 0 ? 1.0 : 9.0, 2.0);  // the first has moved its parameter
      log.add(Kind::gradients, 0.25, 0.75);
    }
  }
  const auto rank = read(log);
  ASSERT_EQ(rank.steps.size(), 2U);
  EXPECT_THAT(rank.steps[1].values, ElementsAre(1, 2));
  EXPECT_THAT(rank.steps[1].gradients, ElementsAre(0.25, 0.75));
  EXPECT_THAT(rank.steps[1].stepped, ElementsAre(true, true));
  EXPECT_THAT(rank.steps[1].learning_rates, ElementsAre(0.5, 0.5));
}

TEST(Evidence, AnOptimizerOfSomethingElseIsSeen) {
  LogWriter log;
  model(log);
  log.add(Kind::stepping, format::kUnknownPlace, format::kUnknownPlace);
  log.add(Kind::values, 1.0).add(Kind::gradients, 1.0);
  const auto rank = read(log);
  ASSERT_EQ(rank.parameters.size(), 1U);
  EXPECT_EQ(rank.parameters[0].name, "");
}

}  // namespace
}  // namespace checker
