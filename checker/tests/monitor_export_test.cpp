// Runs side by side, and as others read them: traces and event files.
#include <gmock/gmock.h>

#include <map>
#include <nlohmann/json.hpp>

#include "files.hpp"
#include "monitor/compare.hpp"
#include "monitor/event_file.hpp"
#include "monitor/live.hpp"
#include "monitor/tensorboard.hpp"
#include "monitor/trace.hpp"
#include "monitor_runs.hpp"
#include "support/text.hpp"

namespace checker::monitor {
namespace {

using checker::testing::healthy_run;
using ::testing::HasSubstr;
using ::testing::Not;

ComparedRun contestant(const std::string& label, size_t ranks, double step) {
  auto run = healthy_run({.ranks = ranks, .step = step});
  const auto figures = figures_of(run);
  return {label, std::move(run), figures};
}

TEST(MonitorCompare, SpeedUpIsThatOfTokensAndEfficiencyPerRank) {
  const std::vector<ComparedRun> runs{contestant("one", 1, 0.1), contestant("four", 4, 0.125),
                                      contestant("eight", 8, 0.2)};
  const auto standings = scaling_of(runs);
  EXPECT_NEAR(standings[0].speed_up, 1, 1e-9);
  EXPECT_NEAR(standings[1].speed_up, 3.2, 1e-6);
  EXPECT_NEAR(standings[1].efficiency, 0.8, 1e-6);
  EXPECT_NEAR(standings[2].speed_up, 4, 1e-6);
  EXPECT_NEAR(standings[2].efficiency, 0.5, 1e-6);
  const auto lines = to_comparison_lines(runs);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[2], HasSubstr("four"));
  EXPECT_THAT(lines[2], HasSubstr("3.20"));
  EXPECT_THAT(lines[2], HasSubstr("80 %"));
  const auto page = to_comparison_page(runs);
  EXPECT_THAT(page, HasSubstr("<td>3.20</td><td>80 %</td>"));
  EXPECT_THAT(page, HasSubstr("Training loss against time"));
}

TEST(MonitorCompare, RunsWithoutStepsHaveNoSpeed) {
  std::vector<ComparedRun> runs{contestant("one", 1, 0.1)};
  auto empty = healthy_run({.ranks = 1, .steps = 0});
  const auto figures = figures_of(empty);
  runs.insert(runs.begin(), ComparedRun{"none", std::move(empty), figures});
  EXPECT_EQ(scaling_of(runs)[1].speed_up, 0);
  EXPECT_THAT(to_comparison_page(runs), HasSubstr("<td>–</td>"));
}

TEST(MonitorTrace, HoldsEverySpanAndNestsPerThread) {
  auto run = healthy_run({.ranks = 2, .steps = 10, .gpus = true});
  // Two collectives at a time must not share a thread.
  auto overlapping = run.ranks[1].collectives[3];
  overlapping.begin += 1e-3;
  overlapping.sequence = 99;
  run.ranks[1].collectives.push_back(overlapping);
  const auto trace = nlohmann::json::parse(to_trace(run));
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> spans;
  size_t counters = 0, forward = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "C") ++counters;
    if (event["ph"] != "X") continue;
    const double begin = event["ts"], duration = event["dur"];
    spans[{event["pid"].get<int>(), event["tid"].get<int>()}].emplace_back(begin, begin + duration);
    if (event["name"] == "forward" && event["pid"] == 0 && event["args"]["step"] == 3) {
      ++forward;
      EXPECT_NEAR(begin, (1 + 0.2 + 0.005) * 1e6, 1);
      EXPECT_NEAR(duration, 0.03e6, 1);
    }
  }
  EXPECT_EQ(forward, 1U);
  EXPECT_GT(counters, 20U);
  EXPECT_EQ((spans[{0, 0}].size()), 40U);
  EXPECT_EQ((spans[{1, 1}].size() + spans[{1, 2}].size()), 11U);
  for (auto& [thread, all] : spans) {
    std::ranges::sort(all);
    for (size_t i = 1; i < all.size(); ++i) EXPECT_LE(all[i - 1].second, all[i].first + 0.01);
  }
}

TEST(MonitorEventFile, SumsAreCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);            // the usual check value
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);  // RFC 3720, B.4
}

// Read back by TensorBoard itself, where it is.
constexpr const char* kTensorBoardReader = R"(
import glob, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
for rank in (0, 1):
    run = EventAccumulator(glob.glob(sys.argv[1] + "/rank-%d/events*" % rank)[0], size_guidance={"scalars": 0})
    run.Reload()
    loss = run.Scalars("training/loss")
    print("rank", rank, "losses", len(loss), "first %.3f last step %d" % (loss[0].value, loss[-1].step))
    print("GPU", len(run.Scalars("GPU 0/watts")) if rank == 0 else "none")
    sizes = run.Histograms("gradients/size")[0]
    print("gradients", sizes.step, sizes.histogram_value.num, "%.1f" % sizes.histogram_value.max)
    print("validation", run.Scalars("validation/loss")[0].value, run.Scalars("validation/loss")[0].step)
    print("RMSE", run.Scalars("validation/RMSE")[0].value, run.Scalars("validation/RMSE")[0].step)
    print("rate", run.Scalars("training/learning rate")[0].value > 0)
    text = run.Tensors("configuration/text_summary" if "configuration/text_summary" in run.Tags()["tensors"] else "configuration")[0]
    print("text", text.tensor_proto.string_val[0].decode().splitlines()[2])
)";

TEST(MonitorTensorBoard, ReadsItsOwnFilesBack) {
  std::string python;
  for (const std::string candidate : {PROJECT_FOLDER "/.venv/bin/python3", "python3"}) {
    const auto found =
        checker::testing::run_program({"env", candidate, "-c", "import tensorboard"});
    if (found.status == 0 && python.empty()) python = candidate;
  }
  if (python.empty()) GTEST_SKIP() << "Python's tensorboard is not installed";
  const TemporaryFolder folder;
  auto run = healthy_run({.ranks = 2, .steps = 50, .gpus = true});
  for (auto& record : run.ranks) {
    record.configuration["seed"] = "7";
    GradientSizesRecord gradients{
        .step = 9, .zeros = 4, .largest = 0.3, .sum = 6, .sum_of_squares = 3};
    gradients.bins[kGradientBins / 2] = 30;
    record.gradients.push_back({2, gradients});
    record.evaluations.push_back({3, {20, "validation", 5, 2}});
    record.measured.push_back({3, {20, "validation/RMSE", 8, 2, /*root=*/true}});
  }
  write_tensorboard(run, folder.path());
  const auto read =
      checker::testing::run_program({python, "-c", kTensorBoardReader, folder.path().string()});
  EXPECT_EQ(read.status, 0) << read.text;
  EXPECT_THAT(read.text, HasSubstr("rank 0 losses 50 first 6.000 last step 50"));
  EXPECT_THAT(read.text, HasSubstr("rank 1 losses 50"));
  EXPECT_THAT(read.text, HasSubstr("GPU " + std::to_string(run.ranks[0].gpus.size() / 2)));
  EXPECT_THAT(read.text, HasSubstr("gradients 9 34.0 0.3"));
  EXPECT_THAT(read.text, HasSubstr("validation 2.5 20"));
  EXPECT_THAT(read.text, HasSubstr("RMSE 2.0 20"));
  EXPECT_THAT(read.text, HasSubstr("rate True"));
  EXPECT_THAT(read.text, HasSubstr("text | seed | 7 |"));
}

// Without TensorBoard: the framing, and a value, as the formats' specifications have them.
TEST(MonitorTensorBoard, FilesAreFramedAsRecords) {
  EventFile file(1.5);
  file.scalar(2.5, 3, "loss", 0.25F);
  const auto& bytes = file.bytes();
  size_t records = 0;
  std::string last;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    ASSERT_LE(at + 12, bytes.size());
    std::memcpy(&length, bytes.data() + at, 8);
    ASSERT_LE(at + 16 + length, bytes.size());
    const auto sum_of = [&](size_t from, size_t size) {
      uint32_t sum = 0;
      std::memcpy(&sum, bytes.data() + from + size, 4);
      const uint32_t crc = crc32c(std::string_view(bytes).substr(from, size));
      return std::pair(sum, ((crc >> 15) | (crc << 17)) + 0xa282ead8U);
    };
    EXPECT_EQ(sum_of(at, 8).first, sum_of(at, 8).second);
    EXPECT_EQ(sum_of(at + 12, length).first, sum_of(at + 12, length).second);
    last = bytes.substr(at + 12, length);
    at += 16 + length;
    ++records;
  }
  EXPECT_EQ(records, 2U);
  // wall_time 2.5, step 3, summary {value {tag: "loss" simple_value: 0.25}}
  const std::string expected(
      "\x09\0\0\0\0\0\0\x04\x40\x10\x03\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\x80\x3e", 26);
  EXPECT_EQ(last, expected);
}

TEST(MonitorLive, ShowsTheLastSecondsAndWhoIsSilent) {
  auto run = healthy_run({.ranks = 3, .gpus = true});
  for (auto& record : run.ranks) record.ended = false;
  run.ranks[1].last = 5;
  run.ranks[2].ended = true;
  const auto lines = live_lines(run, 5, Look{.descriptor = -1});
  ASSERT_EQ(lines.size(), 7U);
  EXPECT_THAT(lines[0], HasSubstr("3 ranks, 21.0 s, step 200, loss 3."));
  EXPECT_THAT(lines[1], HasSubstr("step 200"));
  EXPECT_THAT(lines[1], HasSubstr("backward 55 %"));
  EXPECT_THAT(lines[2], HasSubstr("silent for 16.0 s"));
  EXPECT_THAT(lines[3], HasSubstr("ended"));
  EXPECT_THAT(lines[4], HasSubstr("GPU 0"));
  EXPECT_THAT(lines[4], HasSubstr("busy 90 %"));
}

}  // namespace
}  // namespace checker::monitor
