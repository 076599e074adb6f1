#include "evidence/run.hpp"

#include <gmock/gmock.h>

#include "log_writer.hpp"
#include "support/files.hpp"

namespace checker {
namespace {

namespace recording = distributed_utils::recording;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

RankSeen read(const LogWriter& writer) {
  const TemporaryFolder folder;
  writer.write(folder.path() / "log");
  RankSeen rank;
  rank.log = read_log(folder.path() / "log");
  interpret(rank);
  return rank;
}

void fetch(LogWriter& log, uint64_t split, uint64_t first, uint64_t second) {
  log.add(Kind::fetch, split, first, second);
}

void loss(LogWriter& log, double sum, bool gradients) {
  log.add(Kind::loss, sum, 2.0, gradients ? 1.0 : 0.0);
}

void step(LogWriter& log, double value, double gradient) {
  log.add(Kind::values, value).add(Kind::gradients, gradient);
}

TEST(Evidence, PassesLossesAndStepsComeInTheirOrder) {
  LogWriter log;
  for (int epoch = 0; epoch < 2; ++epoch) {
    fetch(log, 0, 4, 5);
    loss(log, 1, true);
    step(log, 0.5, 0.1);
    fetch(log, 0, 6, 7);
    loss(log, 2, true);
    step(log, 0.6, 0.2);
    fetch(log, 1, 0, 1);
    loss(log, 3, false);
  }
  log.add(Kind::reported, 1.25).add(Kind::exit);
  const auto rank = read(log);
  ASSERT_EQ(rank.passes.size(), 4U);
  EXPECT_EQ(rank.passes[2].split, Split::train);
  EXPECT_EQ(rank.passes[2].epoch, 1U);
  EXPECT_THAT(rank.passes[2].ids(), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(rank.passes[2].batches[1].loss_sum, 2.0);
  EXPECT_EQ(rank.passes[2].batches[1].step, 3U);
  EXPECT_EQ(rank.passes[3].batches[0].step, std::nullopt);
  EXPECT_THAT(rank.steps[3].gradients, ElementsAre(0.2));
  EXPECT_THAT(rank.reported, ElementsAre(1.25));
  EXPECT_TRUE(rank.left_regularly);
}

TEST(Evidence, ALoaderMayFetchAhead) {
  LogWriter log;
  fetch(log, 0, 1, 2);
  fetch(log, 0, 3, 4);
  loss(log, 10, true);
  loss(log, 20, true);
  const auto rank = read(log);
  ASSERT_EQ(rank.passes.size(), 1U);
  EXPECT_EQ(rank.passes[0].batches[0].loss_sum, 10);
  EXPECT_EQ(rank.passes[0].batches[1].loss_sum, 20);
}

TEST(Evidence, ALoopThatIsBrokenOffDoesNotShiftLossesToTheNext) {
  LogWriter log;
  fetch(log, 0, 1, 2);
  fetch(log, 1, 3, 4);
  loss(log, 30, false);
  const auto rank = read(log);
  ASSERT_EQ(rank.passes.size(), 1U);  // what was fetched and not used is no pass
  EXPECT_EQ(rank.passes[0].split, Split::validation);
  EXPECT_EQ(rank.passes[0].batches[0].loss_sum, 30);
}

// With workers, fetches come in any order; what tells the order is when batches are used.
TEST(Evidence, BatchesComeInTheOrderInWhichTheyAreTaken) {
  const auto take = [](LogWriter& log, uint64_t first, uint64_t second) {
    log.add(Kind::taken, uint64_t{0}, first, second);
  };
  LogWriter log;
  fetch(log, 0, 3, 4);
  fetch(log, 0, 1, 2);
  take(log, 1, 2);
  loss(log, 10, true);
  step(log, 0.5, 0.1);
  fetch(log, 0, 5, 6);  // ahead, never used
  take(log, 3, 4);
  loss(log, 20, true);
  step(log, 0.6, 0.1);
  const auto rank = read(log);
  ASSERT_EQ(rank.passes.size(), 1U);
  EXPECT_THAT(rank.passes[0].ids(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(rank.passes[0].batches[0].loss_sum, 10);
  EXPECT_EQ(rank.passes[0].batches[1].loss_sum, 20);
  EXPECT_EQ(rank.passes[0].batches[1].step, 1U);
  EXPECT_EQ(rank.passes[0].batches[2].step, std::nullopt);
}

TEST(Evidence, WhatIsKeptMayBeUsedAgain) {
  LogWriter log;
  fetch(log, 1, 1, 2);  // all of a split, for later
  for (int epoch = 0; epoch < 2; ++epoch) {
    fetch(log, 0, 1, 2);
    loss(log, 5, true);
    log.add(Kind::taken, uint64_t{1}, uint64_t{1}, uint64_t{2});
    loss(log, 7, false);
  }
  const auto rank = read(log);
  ASSERT_EQ(rank.passes_over(Split::validation).size(), 2U);
  EXPECT_EQ(rank.passes_over(Split::validation)[1]->batches[0].loss_sum, 7);
  EXPECT_EQ(rank.passes_over(Split::validation)[1]->epoch, 1U);
}

TEST(Evidence, TrainingAndEvaluatingOneSplitAreTwoPasses) {
  LogWriter log;
  fetch(log, 0, 1, 2);
  loss(log, 1, true);
  step(log, 0.5, 0.1);
  fetch(log, 0, 3, 4);  // other samples: nothing but the purpose tells the passes apart
  loss(log, 2, false);
  const auto rank = read(log);
  ASSERT_EQ(rank.passes.size(), 2U);
  EXPECT_TRUE(rank.passes[0].trains());
  EXPECT_TRUE(rank.passes[1].evaluates());
  EXPECT_EQ(rank.passes[1].epoch, 1U);
  EXPECT_EQ(rank.passes[0].batches[0].step, 0U);
}

TEST(Evidence, CollectivesKnowTheirGroupAndTheirEnd) {
  LogWriter log;
  log.add(Kind::group, recording::GroupRecord{.group = 0, .rank = 1, .size = 2, .name_size = 5},
          std::string("world"), uint32_t{0}, uint32_t{1});
  recording::CollectiveRecord call{};
  call.op_type = 1;
  call.elements = 12;
  call.frames = 1;
  log.add(Kind::collective, call, uint64_t{0x1234});
  call.sequence = 1;
  log.add(Kind::collective, call, uint64_t{0x1234});
  log.add(Kind::completed, recording::CompletedRecord{.sequence = 0, .group = 0, .failed = 0});
  log.add(Kind::shutdown, uint64_t{0});
  const auto rank = read(log);
  ASSERT_EQ(rank.groups.size(), 1U);
  EXPECT_EQ(rank.groups[0].name, "world");
  EXPECT_THAT(rank.groups[0].members, ElementsAre(0, 1));
  EXPECT_EQ(rank.groups[0].shut_down, 4U);  // the last of five events
  ASSERT_EQ(rank.collectives.size(), 2U);
  EXPECT_TRUE(rank.collectives[0].completed);
  EXPECT_FALSE(rank.collectives[1].completed);
  EXPECT_THAT(rank.collectives[0].frames, ElementsAre(0x1234));
}

// A log is written by a program that nobody trusts.
TEST(Evidence, GarbageIsLeftOut) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "log";
  const auto events_of = [&] { return read_log(file).events; };

  EXPECT_THAT(events_of(), IsEmpty());  // no such file
  std::ofstream(file) << "no log";
  EXPECT_THAT(events_of(), IsEmpty());

  LogWriter log;
  log.add(Kind::device, std::string("cpu"));
  log.write(file, /*magic=*/42);
  EXPECT_THAT(events_of(), IsEmpty());
  EXPECT_TRUE(read_log(file).broken);

  log.write(file, recording::kMagic, /*beyond=*/1 << 20);  // claims more than there is
  EXPECT_EQ(events_of().size(), 1U);

  LogWriter half = log;
  half.raw(6, 8, "12345678", /*ready=*/false).write(file);
  EXPECT_EQ(events_of().size(), 1U);

  LogWriter liar = log;
  liar.raw(6, 1'000'000, "12345678", true).write(file);
  EXPECT_EQ(events_of().size(), 1U);
  EXPECT_TRUE(read_log(file).broken);
}

TEST(Evidence, RecordsTooShortForWhatTheyClaimAreLeftOut) {
  LogWriter log;
  for (uint16_t kind = 1; kind <= 20; ++kind) log.raw(kind, 3, "abc", true);
  recording::GroupRecord group{.group = 0, .rank = 0, .size = 1, .name_size = 4'000'000'000};
  log.add(Kind::group, group);
  log.add(Kind::parameters,
          recording::TensorRecord{.scalar_type = 7, .name_size = 1'000'000, .elements = 4});
  const auto rank = read(log);
  EXPECT_THAT(rank.groups, IsEmpty());
  EXPECT_THAT(rank.collectives, IsEmpty());
  EXPECT_THAT(rank.parameters, IsEmpty());
}

}  // namespace
}  // namespace checker
