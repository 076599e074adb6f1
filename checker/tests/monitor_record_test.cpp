// What the checker reads of records: whole, killed, damaged, cut short, mixed.
#include <gmock/gmock.h>

#include "files.hpp"
#include "monitor/figures.hpp"
#include "monitor/run.hpp"
#include "monitor_writer.hpp"

namespace checker::monitor {
namespace {

using checker::testing::error_of;
using checker::testing::Place;
using checker::testing::RecordWriter;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace format = instrumentation;
using format::Kind;

RankRecord read(const RecordWriter& writer, size_t length = SIZE_MAX) {
  const TemporaryFolder folder;
  writer.write(folder.path() / "rank.monitor", length);
  return read_record(folder.path() / "rank.monitor");
}

RecordWriter ten_steps() {
  RecordWriter writer;
  for (int i = 1; i <= 10; ++i) writer.step(static_cast<uint64_t>(i), i, i + 0.5, 10.0 / i);
  return writer;
}

TEST(MonitorRecord, IsReadAsItWasWritten) {
  auto writer = ten_steps();
  writer.text(Kind::configuration, 0, "task=language_model\nseed=7\n").group("world", 0, 2);
  writer.text(Kind::device, 1, "cuda:1").all_reduce(0, 1.25, 1.5);
  writer.phase(Phase::forward, 1.25, 3).phase(Phase::backward, 1.5, 3).phase(Phase::none, 2);
  writer.phase(Phase::data, 2.5).phase(Phase::dropped, 3).phase(Phase::data, 20);
  writer.add(Kind::memory, 2, MemoryRecord{1, 2, 3, 4});
  writer.add(Kind::traffic, 2, TrafficRecord{1, 5, 6, 7})
      .add(Kind::traffic, 3, TrafficRecord{1, 8, 9, 10});
  const format::EvaluationRecord evaluation{.step = 10, .count = 4, .sum = 6};
  writer.text(Kind::evaluation, 19,
              std::string(reinterpret_cast<const char*>(&evaluation), sizeof evaluation) + "test");
  writer.text(Kind::exit, 20, "");
  const auto record = read(writer);
  ASSERT_EQ(record.evaluations.size(), 1U);
  EXPECT_EQ(record.evaluations[0].sample.split, "test");
  EXPECT_EQ(record.evaluations[0].sample.sum, 6);
  EXPECT_EQ(record.evaluations[0].sample.count, 4);
  ASSERT_EQ(record.steps.size(), 10U);
  EXPECT_EQ(record.steps[3].number, 4U);
  EXPECT_NEAR(record.steps[3].begin, 4, 1e-6);
  EXPECT_NEAR(record.steps[3].duration(), 0.5, 1e-6);
  EXPECT_NEAR(record.steps[3].phases[2], 0.125, 1e-6);
  EXPECT_DOUBLE_EQ(record.steps[3].loss, 2.5);
  EXPECT_EQ(record.configuration.at("seed"), "7");
  EXPECT_EQ(record.groups.at(0).name, "world");
  EXPECT_EQ(record.device, "cuda:1");
  ASSERT_EQ(record.collectives.size(), 1U);
  EXPECT_NEAR(record.collectives[0].begin, 1.25, 1e-6);
  EXPECT_EQ(record.collectives[0].bytes, 4096U);
  ASSERT_EQ(record.spans.size(), 2U);
  EXPECT_EQ(record.spans[1].phase, Phase::backward);
  EXPECT_EQ(record.spans[1].step, 3U);
  EXPECT_NEAR(record.spans[1].begin, 1.5, 1e-6);
  EXPECT_NEAR(record.spans[1].end, 2, 1e-6);
  EXPECT_EQ(record.memory->activations, 4U);
  EXPECT_EQ(record.traffic.at(1).calls, 8U);  // the last one counts
  EXPECT_TRUE(record.ended);
  EXPECT_NEAR(record.last, 20, 1e-6);
  EXPECT_EQ(record.lost, 0U);
  EXPECT_FALSE(record.cut_short);
}

TEST(MonitorRecord, ACollectiveOnAGpuBeginsWithItsKernel) {
  auto writer = ten_steps();
  writer.all_reduce(0, 1.25, 1.5).all_reduce(1, 1.25, 1.75, 0.125);
  const auto calls = read(writer).collectives;
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_NEAR(calls[0].begin, 1.25, 1e-6);
  EXPECT_EQ(calls[0].on_gpu, 0);
  EXPECT_NEAR(calls[1].begin, 1.625, 1e-6);
  EXPECT_NEAR(calls[1].end, 1.75, 1e-6);
  EXPECT_NEAR(calls[1].on_gpu, 0.125, 1e-9);
}

TEST(MonitorRecord, OfAKilledRankHoldsWhatWasSampled) {
  auto writer = ten_steps();
  auto half = writer;
  half.step(11, 11, 12, 1);
  // Killed while it wrote: the mark that vouches for a record comes last.
  writer.bytes += half.bytes.substr(writer.bytes.size(), 40);
  std::memset(
      writer.bytes.data() + writer.bytes.size() - 40 + offsetof(format::RecordHeader, check), 0, 4);
  const auto record = read(writer);
  EXPECT_EQ(record.steps.size(), 10U);
  EXPECT_FALSE(record.ended);
  EXPECT_EQ(record.lost, 0U);
}

TEST(MonitorRecord, DamageCostsTheRestOfItsChunkOnly) {
  RecordWriter writer;
  for (int i = 1; i <= 7000; ++i) writer.step(static_cast<uint64_t>(i), i, i + 0.5, 1);
  ASSERT_GT(writer.bytes.size(), 3 * format::kChunk);
  const auto whole = read(writer);
  EXPECT_EQ(whole.steps.size(), 7000U);
  writer.bytes[format::kChunk + format::kChunk / 2] ^= 0x40;
  const auto record = read(writer);
  EXPECT_GT(record.lost, 0U);
  EXPECT_LE(record.lost, format::kChunk / 2 + 200);
  EXPECT_GT(record.steps.size(), 5000U);
  EXPECT_LT(record.steps.size(), 7000U);
  EXPECT_EQ(record.steps.back().number, 7000U);
}

TEST(MonitorRecord, ADamagedFigureIsNotBelieved) {
  auto writer = ten_steps();
  writer.bytes[writer.bytes.size() - 2] ^= 0x10;  // in the last loss
  const auto record = read(writer);
  ASSERT_EQ(record.steps.size(), 10U);
  EXPECT_TRUE(std::isnan(record.steps.back().loss));
  EXPECT_DOUBLE_EQ(record.steps[8].loss, 10.0 / 9);
  EXPECT_EQ(record.lost, sizeof(format::RecordHeader) + sizeof(format::StepLossRecord));
}

TEST(MonitorRecord, MayBeCutAnywhere) {
  const auto writer = ten_steps();
  const auto length = writer.bytes.size();
  for (size_t cut = sizeof(Header); cut < length; cut += 24) {
    const auto record = read(writer, cut);
    EXPECT_TRUE(record.cut_short) << cut;
    EXPECT_LT(record.steps.size(), 11U);
    EXPECT_LT(record.lost, 200U);  // of the one record that was cut
  }
}

// Whoever follows a run reads what was just now, and from its beginning what it is.
TEST(MonitorRecord, MayBeReadAtItsEndsOnly) {
  const TemporaryFolder folder;
  RecordWriter writer;
  writer.text(Kind::device, 0, "cuda:3");
  for (uint64_t i = 1; i <= 20'000; ++i) writer.step(i, double(i), double(i) + 0.5, 1);
  ASSERT_GT(writer.bytes.size(), 8 * format::kChunk);
  const auto file = folder.path() / "rank-00000.monitor";
  writer.write(file);
  const auto whole = read_record(file), ends = read_record(file, 2);
  EXPECT_EQ(whole.steps.size(), 20'000U);
  EXPECT_LT(ends.steps.size(), 3 * format::kChunk / 128 + 1);
  EXPECT_EQ(ends.steps.front().number, 1U);
  EXPECT_EQ(ends.steps.back().number, 20'000U);
  EXPECT_EQ(ends.device, "cuda:3");
  EXPECT_EQ(ends.last, whole.last);
  EXPECT_EQ(ends.lost, 0U);
  EXPECT_EQ(read_record(file, 100).steps.size(), 20'000U);
}

TEST(MonitorRecord, OfSomethingElseIsRefused) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "rank.monitor";
  const auto error = [&](const std::string& text) {
    write_file(file, text);
    return error_of([&] { read_record(file); });
  };
  EXPECT_THAT(error("short"), HasSubstr("too short"));
  EXPECT_THAT(error(std::string(1000, 'x')), HasSubstr("not a record of a run"));
  auto bytes = ten_steps().file();
  bytes[offsetof(Header, rank)] ^= 1;
  EXPECT_THAT(error(bytes), HasSubstr("beginning is damaged"));
}

void write_ranks(const std::filesystem::path& folder, uint32_t world_size, uint64_t run,
                 double wall, uint32_t first = 0) {
  for (uint32_t rank = first; rank < world_size; ++rank) {
    RecordWriter writer({.rank = rank, .world_size = world_size, .run = run, .wall = wall});
    writer.step(1, 1, 2, 3).text(Kind::exit, 3, "");
    writer.write(folder /
                 ("rank-" + std::to_string(rank) + "-" + std::to_string(run) + ".monitor"));
  }
}

TEST(MonitorRun, IsFoundByItsOutputFolderAndIsTheNewest) {
  const TemporaryFolder folder;
  write_ranks(folder.path() / "monitor/old", 1, 1, 1000);
  write_ranks(folder.path() / "monitor/new", 2, 2, 2000);
  std::filesystem::last_write_time(
      folder.path() / "monitor/old/rank-0-1.monitor",
      std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto run = load_run(folder.path());
  EXPECT_EQ(run.ranks.size(), 2U);
  EXPECT_THAT(run.remarks, IsEmpty());
  EXPECT_TRUE(run.ended());
  EXPECT_EQ(run.older, 1U);
  EXPECT_EQ(load_run(folder.path() / "monitor/old").ranks.size(), 1U);
}

TEST(MonitorRun, OfMixedRecordsIsTheNewest) {
  const TemporaryFolder folder;
  write_ranks(folder.path(), 4, 1, 1000, 2);  // ranks 2 and 3 of an older run
  write_ranks(folder.path(), 2, 2, 2000);
  const auto run = load_run(folder.path());
  EXPECT_EQ(run.ranks.size(), 2U);
  EXPECT_EQ(run.world_size, 2U);
  EXPECT_THAT(run.remarks,
              Contains(AllOf(HasSubstr("rank-3-1.monitor"), HasSubstr("another run"))));
}

TEST(MonitorRun, SaysWhichRanksLeftNothing) {
  const TemporaryFolder folder;
  write_ranks(folder.path(), 4, 1, 1000, 2);
  write_file(folder.path() / "rank-1.monitor", "nonsense");
  const auto run = load_run(folder.path());
  EXPECT_EQ(run.ranks.size(), 2U);
  EXPECT_THAT(run.remarks, Contains("Rank 0 left no record."));
  EXPECT_THAT(run.remarks, Contains("Rank 1 left no record."));
  EXPECT_THAT(run.remarks, Contains(HasSubstr("rank-1.monitor is too short")));
}

TEST(MonitorRun, NeedsARecord) {
  const TemporaryFolder folder;
  EXPECT_THAT(error_of([&] { load_run(folder.path()); }), HasSubstr("--monitor"));
  EXPECT_THAT(error_of([&] { load_run(folder.path() / "nowhere"); }), HasSubstr("There is no "));
  write_file(folder.path() / "rank-1.monitor", "nonsense");
  EXPECT_THAT(error_of([&] { load_run(folder.path()); }), HasSubstr("too short"));
}

// The second node's clock is 3 s ahead, its monotonic clock anything.
TEST(MonitorRun, NodesAgreeOnTheTimeByTheirCollectives) {
  const TemporaryFolder folder;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    RecordWriter writer({.rank = rank,
                         .world_size = 2,
                         .host = "node" + std::to_string(rank),
                         .wall = rank == 0 ? 1000.0 : 1003.0 + 0.5,
                         .clock = rank == 0 ? 50.0 : 7000.0});
    // It started half a second later, so that the same moment is 0.5 s less for it.
    const double late = rank == 0 ? 0 : 0.5;
    writer.group("world", rank, 2);
    for (int i = 0; i < 20; ++i) {
      writer.all_reduce(static_cast<uint64_t>(i), i + 1 - late, i + 1.1 - late);
    }
    writer.write(folder.path() / ("rank-" + std::to_string(rank) + ".monitor"));
  }
  const auto run = load_run(folder.path());
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_NEAR(run.ranks[0].collectives[i].end, run.ranks[1].collectives[i].end, 1e-6);
  }
  EXPECT_THAT(run.remarks, Contains(HasSubstr("up to 3.00 s apart")));
}

}  // namespace
}  // namespace checker::monitor
