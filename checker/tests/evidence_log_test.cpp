// Single records of a log, and logs that are damaged.
#include <gmock/gmock.h>

#include <cmath>
#include <fstream>

#include "evidence/run.hpp"
#include "log_writer.hpp"
#include "support/files.hpp"

namespace checker {
namespace {

namespace format = instrumentation;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(EvidenceLog, CollectivesKnowTheirGroupAndTheirEnd) {
  LogWriter log;
  log.add(Kind::group, format::GroupRecord{.group = 0, .rank = 1, .size = 2, .name_size = 5},
          std::string("world"), uint32_t{0}, uint32_t{1});
  format::CollectiveRecord call{};
  call.op_type = 1;
  call.elements = 12;
  call.frames = 1;
  log.add(Kind::collective, call, uint64_t{0x1234});
  call.sequence = 1;
  log.add(Kind::collective, call, uint64_t{0x1234});
  log.add(Kind::completed,
          format::CompletedRecord{.sequence = 0, .on_gpu = 0, .group = 0, .failed = 0});
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
TEST(EvidenceLog, GarbageIsLeftOut) {
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

  log.write(file, format::kMagic, /*beyond=*/1 << 20);  // claims more than there is
  EXPECT_EQ(events_of().size(), 1U);

  LogWriter half = log;
  half.raw(6, 8, "12345678", /*ready=*/false).write(file);
  EXPECT_EQ(events_of().size(), 1U);

  LogWriter liar = log;
  liar.raw(6, 1'000'000, "12345678").write(file);
  EXPECT_EQ(events_of().size(), 1U);
  EXPECT_TRUE(read_log(file).broken);
}

// What was written before damage and behind its chunk is read.
TEST(EvidenceLog, DamageCostsTheRestOfItsChunk) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "log";
  LogWriter log;
  const std::string text(1000, 'x');  // 1024 bytes with its header: 255 of them fit
  const auto left_in_the_first =
      format::kChunk - sizeof(format::Header) - 255 * 1024 - sizeof(format::RecordHeader);
  for (int i = 0; i < 600; ++i) {
    if (i == 255) log.add(Kind::padding, std::string(left_in_the_first, '\0'));
    log.add(Kind::device, text);
  }
  log.write(file);
  ASSERT_EQ(read_log(file).events.size(), 600U);
  std::fstream(file, std::ios::in | std::ios::out)
      .seekp(sizeof(format::Header) + 100 * 1024 + 500)
      .put('y');
  EXPECT_EQ(read_log(file).events.size(), 100U + 600 - 255);
  EXPECT_TRUE(read_log(file).broken);
}

TEST(EvidenceLog, NumbersAreReadInTheTypeOfTheirParameter) {
  LogWriter log;
  log.add(Kind::model, LogWriter::tensor("half", 5, 2), LogWriter::tensor("brain", 15, 1),
          LogWriter::tensor("single", 6, 1), LogWriter::tensor("double", 7, 1));
  log.add(Kind::stepping, uint64_t{0}, uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{3});
  log.add(Kind::learning_rates, 0.5, 0.25);
  log.add(Kind::values, uint16_t{0xc100}, uint16_t{0x0001}, uint16_t{0x4049}, 0.5F, 0.1);
  log.add(Kind::gradients, uint16_t{0x7c00}, uint16_t{0}, uint16_t{0}, 0.0F, 2.0);
  const auto rank = read(log);
  ASSERT_EQ(rank.steps.size(), 1U);
  EXPECT_THAT(rank.steps[0].values, ElementsAre(-2.5, std::ldexp(1, -24), 3.140625, 0.5, 0.1));
  EXPECT_THAT(rank.steps[0].gradients, ElementsAre(INFINITY, 0, 0, 0, 2));
  EXPECT_THAT(rank.steps[0].learning_rates, ElementsAre(0.5, 0.25));
  EXPECT_EQ(rank.unread, std::nullopt);
}

TEST(EvidenceLog, ATypeThatNobodyKnowsIsSaidToBeUnread) {
  LogWriter log;
  log.add(Kind::model, LogWriter::tensor("complex", 9, 1));
  log.add(Kind::stepping, uint64_t{0}, uint64_t{0});
  log.add(Kind::values, 1.0F, 1.0F);
  EXPECT_NE(read(log).unread, std::nullopt);
}

TEST(EvidenceLog, BuffersPhasesAndForwardPassesAreSeen) {
  LogWriter log;
  const std::string values(8, '\0');
  log.add(Kind::model, LogWriter::tensor("w", 7, 1, values),
          LogWriter::tensor("count", 4, 1, values, /*buffer=*/true));
  log.add(Kind::phase,
          format::PhaseRecord{.phase = format::Phase::evaluation, .split = 1, .step = 4});
  log.add(Kind::forward, format::ForwardRecord{.training = 1, .gradients = 0});
  log.add(Kind::splits, std::string("train\nvalidation"));
  log.add(Kind::reported, 2.5, 0.75);
  const auto rank = read(log);
  ASSERT_EQ(rank.model.size(), 2U);
  EXPECT_TRUE(rank.model[1].buffer);
  EXPECT_THAT(rank.model[1].values, ElementsAre(0));
  ASSERT_EQ(rank.phases.size(), 1U);
  EXPECT_EQ(rank.phases[0].mark.split, 1U);
  ASSERT_EQ(rank.forwards.size(), 1U);
  EXPECT_TRUE(rank.forwards[0].training);
  EXPECT_THAT(rank.splits, ElementsAre("train", "validation"));
  EXPECT_THAT(rank.reports.at(0).metrics, ElementsAre(0.75));
}

TEST(EvidenceLog, WhoPreparesDataIsSeen) {
  LogWriter log;
  log.add(Kind::prepared, uint64_t{0}, std::string("signals"));
  log.add(Kind::prepared, uint64_t{1}, std::string("signals"));
  const auto rank = read(log);
  ASSERT_EQ(rank.preparations.size(), 2U);
  EXPECT_EQ(rank.preparations[0].name, "signals");
  EXPECT_TRUE(rank.preparations[0].makes);
  EXPECT_FALSE(rank.preparations[1].makes);
  EXPECT_EQ(rank.preparations[1].event, 1U);
}

TEST(EvidenceLog, RecordsTooShortForWhatTheyClaimAreLeftOut) {
  LogWriter log;
  for (uint16_t kind = 1; kind <= 46; ++kind) log.raw(kind, 3, "abc");
  format::GroupRecord group{.group = 0, .rank = 0, .size = 1, .name_size = 4'000'000'000};
  log.add(Kind::group, group);
  log.add(Kind::model, format::TensorRecord{.scalar_type = 7,
                                            .buffer = 0,
                                            .name_size = 1'000'000,
                                            .dimensions = 0,
                                            .elements = 4,
                                            .bytes = 0});
  const auto rank = read(log);
  EXPECT_THAT(rank.groups, IsEmpty());
  EXPECT_THAT(rank.collectives, IsEmpty());
  EXPECT_THAT(rank.parameters, IsEmpty());
  EXPECT_THAT(rank.steps, IsEmpty());
  EXPECT_THAT(rank.preparations, IsEmpty());
}

}  // namespace
}  // namespace checker
