#include "instrumentation/monitoring.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "log.hpp"
#include "ranks.hpp"

namespace instrumentation {
namespace {

using namespace distributed_utils;  // NOLINT(google-build-using-namespace)
using namespace std::chrono_literals;

TEST(Monitoring, IsOffUntilItIsStarted) {
  EXPECT_FALSE(monitoring::enabled());
  EXPECT_FALSE(monitoring::wants_details(1));
  monitoring::record_text(Kind::device, "cpu");  // goes nowhere, harms nothing
}

TEST(Monitoring, EachRankRecordsWhoItIsAndWhatItUses) {
  ranks::run(2, [] {
    monitoring::start(
        {.folder = ranks::shared_folder(), .configuration = "seed=7\n", .interval = 5ms});
    const World world = setup();
    const auto file = monitor_log_below(ranks::shared_folder(), world.rank);
    const auto enough = std::chrono::steady_clock::now() + 30s;
    while (read_log(file).of(Kind::process).size() < 4 &&
           std::chrono::steady_clock::now() < enough) {
      std::this_thread::sleep_for(5ms);
    }
    const Log log = read_log(file);
    EXPECT_EQ(log.header.magic, kMagic);
    EXPECT_EQ(log.header.rank, static_cast<uint32_t>(world.rank));
    EXPECT_EQ(log.header.world_size, 2U);
    EXPECT_EQ(log.header.process, static_cast<uint32_t>(getpid()));
    EXPECT_EQ(log.of(Kind::configuration).at(0).payload, "seed=7\n");
    const auto samples = log.of(Kind::process);
    ASSERT_GE(samples.size(), 4U);
    EXPECT_GT(samples.back().as<ProcessSample>().resident, 10U << 20);
    EXPECT_GE(samples.back().as<ProcessSample>().cpu, samples.front().as<ProcessSample>().cpu);
    // One rank looks at what belongs to all.
    EXPECT_EQ(log.of(Kind::node).empty(), world.local_rank != 0);
    // Both lie in one folder: the run has one name.
    EXPECT_EQ(file.parent_path(), monitor_log_below(ranks::shared_folder(), 0).parent_path());
    barrier();
  });
}

TEST(Monitoring, SeesCollectivesOfTheProgramAndOfTheReducer) {
  ranks::run(2, [] {
    monitoring::start({.folder = ranks::shared_folder(), .interval = 5ms});
    const World world = setup();
    all_reduce(torch::ones({3, 4}, torch::kDouble), ReduceOp::MAX);
    broadcast(torch::ones({5}, torch::kFloat), 1);
    auto linear = torch::nn::Linear(8, 8);
    const auto model = DistributedDataParallel(linear.ptr());
    for (int step = 0; step < 3; ++step) model->forward(torch::ones({1, 8})).sum().backward();
    EXPECT_GT(monitoring::collective_time(), 0U);
    const auto file = monitor_log_below(ranks::shared_folder(), world.rank);
    const auto enough = std::chrono::steady_clock::now() + 30s;
    const auto reduced = [&] {  // bytes of all all-reduces, once they are summed up
      uint64_t bytes = 0;
      for (const auto& record : read_log(file).of(Kind::traffic)) {
        const auto traffic = record.as<TrafficRecord>();
        if (traffic.op_type == static_cast<uint64_t>(c10d::OpType::ALLREDUCE)) {
          bytes = traffic.bytes;
        }
      }
      return bytes;
    };
    const uint64_t expected = 12 * 8 + 3 * (8 * 8 + 8) * 4;
    while (reduced() < expected && std::chrono::steady_clock::now() < enough) {
      std::this_thread::sleep_for(5ms);
    }
    EXPECT_EQ(reduced(), expected);
    const Log log = read_log(file);
    const auto group = log.of(Kind::group).at(0);
    EXPECT_EQ(group.as<GroupRecord>().size, 2U);
    EXPECT_EQ(group.payload.substr(sizeof(GroupRecord), 5), "world");
    bool found = false;
    for (const auto& record : log.of(Kind::collective)) {
      const auto call = record.as<CollectiveRecord>();
      found = found ||
              (call.op_type == static_cast<uint8_t>(c10d::OpType::BROADCAST) && call.bytes == 20);
    }
    EXPECT_TRUE(found);
    const auto ends = log.of(Kind::completed);
    EXPECT_GE(ends.size(), 4U);
    for (const auto& end : ends) EXPECT_EQ(end.as<CompletedRecord>().failed, 0U);
    barrier();
  });
}

TEST(Monitoring, ARankThatIsKilledLeavesWhatWasSampled) {
  const ranks::TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    monitoring::start({.folder = folder.path(), .interval = 1ms});
    for (uint64_t step = 1;; ++step) {
      monitoring::record_one(Kind::step_loss, StepLossRecord{step, 1.0 / double(step)});
      if (step == 50'000) raise(SIGKILL);
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Log log = read_log(monitor_log_below(folder.path(), 0));
  ASSERT_EQ(log.of(Kind::step_loss).size(), 50'000U);
  EXPECT_EQ(log.of(Kind::step_loss).back().as<StepLossRecord>().step, 50'000U);
  EXPECT_TRUE(log.of(Kind::exit).empty());
}

TEST(Monitoring, ARegularExitIsRecorded) {
  const ranks::TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    monitoring::start({.folder = folder.path(), .interval = std::chrono::hours(1)});
    std::exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  const Log log = read_log(monitor_log_below(folder.path(), 0));
  EXPECT_EQ(log.records.back().kind, Kind::exit);
  EXPECT_GE(log.of(Kind::process).size(), 1U);
}

TEST(Monitoring, SaysWhereItCannotRecord) {
  try {
    monitoring::start({.folder = "/proc/nowhere"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("/proc/nowhere"));
  }
  EXPECT_FALSE(monitoring::enabled());
}

}  // namespace
}  // namespace instrumentation
