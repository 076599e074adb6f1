#include "distributed_utils/monitoring.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "distributed_utils/collectives.hpp"
#include "distributed_utils/ddp.hpp"
#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "gpu_probe.hpp"
#include "monitor_file.hpp"
#include "monitor_log.hpp"
#include "monitor_probes.hpp"
#include "ranks.hpp"

namespace distributed_utils::monitored {
namespace {

using monitoring::Kind;
using namespace std::chrono_literals;

monitoring::Header some_header() {
  monitoring::Header header{};
  header.magic = monitoring::kMagic;
  return header;
}

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
    const auto file = record_below(ranks::shared_folder(), world.rank);
    const auto enough = std::chrono::steady_clock::now() + 30s;
    while (read_log(file).of(Kind::process).size() < 4 &&
           std::chrono::steady_clock::now() < enough) {
      std::this_thread::sleep_for(5ms);
    }
    const Log log = read_log(file);
    EXPECT_EQ(log.header.magic, monitoring::kMagic);
    EXPECT_EQ(log.header.rank, static_cast<uint32_t>(world.rank));
    EXPECT_EQ(log.header.world_size, 2U);
    EXPECT_EQ(log.header.process, static_cast<uint32_t>(getpid()));
    EXPECT_EQ(log.of(Kind::configuration).at(0).payload, "seed=7\n");
    const auto samples = log.of(Kind::process);
    ASSERT_GE(samples.size(), 4U);
    EXPECT_GT(samples.back().as<monitoring::ProcessSample>().resident, 10U << 20);
    EXPECT_GE(samples.back().as<monitoring::ProcessSample>().cpu,
              samples.front().as<monitoring::ProcessSample>().cpu);
    // One rank looks at what belongs to all.
    EXPECT_EQ(log.of(Kind::node).empty(), world.local_rank != 0);
    // Both lie in one folder: the run has one name.
    EXPECT_EQ(file.parent_path(), record_below(ranks::shared_folder(), 0).parent_path());
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
    const auto file = record_below(ranks::shared_folder(), world.rank);
    const auto enough = std::chrono::steady_clock::now() + 30s;
    const auto reduced = [&] {  // bytes of all all-reduces, once they are summed up
      uint64_t bytes = 0;
      for (const auto& record : read_log(file).of(Kind::traffic)) {
        const auto traffic = record.as<monitoring::TrafficRecord>();
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
    EXPECT_EQ(group.as<monitoring::GroupRecord>().size, 2U);
    EXPECT_EQ(group.payload.substr(sizeof(monitoring::GroupRecord)), "world");
    bool found = false;
    for (const auto& record : log.of(Kind::collective)) {
      const auto call = record.as<monitoring::CollectiveRecord>();
      EXPECT_LE(call.begin, record.nanoseconds);
      EXPECT_EQ(call.failed, 0U);
      found = found ||
              (call.op_type == static_cast<uint8_t>(c10d::OpType::BROADCAST) && call.bytes == 20);
    }
    EXPECT_TRUE(found);
    barrier();
  });
}

TEST(Monitoring, ARankThatIsKilledLeavesWhatWasSampled) {
  const ranks::TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    monitoring::start({.folder = folder.path(), .interval = 1ms});
    for (uint64_t step = 1;; ++step) {
      monitoring::record_one(Kind::loss, monitoring::LossRecord{step, 1.0 / double(step)});
      if (step == 50'000) raise(SIGKILL);
    }
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Log log = read_log(record_below(folder.path(), 0));
  ASSERT_EQ(log.of(Kind::loss).size(), 50'000U);
  EXPECT_EQ(log.of(Kind::loss).back().as<monitoring::LossRecord>().step, 50'000U);
  EXPECT_TRUE(log.of(Kind::end).empty());
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
  const Log log = read_log(record_below(folder.path(), 0));
  EXPECT_EQ(log.records.back().kind, Kind::end);
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

TEST(MonitorFile, GrowsByChunksInWhichNoRecordIsSplit) {
  const ranks::TemporaryFolder folder;
  {
    detail::MonitorFile file(folder / "f", some_header());
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&file, thread] {
        const std::string text(100 + static_cast<size_t>(thread) * 7,
                               static_cast<char>('a' + thread));
        for (int i = 0; i < 3000; ++i) {
          EXPECT_TRUE(file.append(Kind::device, 1, std::as_bytes(std::span(text))));
        }
      });
    }
    for (auto& thread : threads) thread.join();
  }
  const Log log = read_log(folder / "f");
  EXPECT_EQ(log.bytes % monitoring::kChunk, 0U);
  EXPECT_GT(log.bytes / monitoring::kChunk, 4U);
  EXPECT_EQ(log.records.size(), 12'000U);
  for (const auto& record : log.records) {
    EXPECT_EQ(record.payload, std::string(record.payload.size(), record.payload[0]));
  }
}

// A limit on file sizes stands for a full disk.
TEST(MonitorFile, OnAFullDiskSaysSoAndKeepsWhatItHas) {
  const ranks::TemporaryFolder folder;
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{monitoring::kChunk, monitoring::kChunk};
    setrlimit(RLIMIT_FSIZE, &limit);
    detail::MonitorFile file(folder / "f", some_header());
    const std::string text(1000, 'x');
    int written = 0;
    while (file.append(Kind::device, 1, std::as_bytes(std::span(text)))) ++written;
    std::_Exit(written > 200 && !file.append(Kind::device, 1, {}) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_GT(read_log(folder / "f").records.size(), 200U);
}

TEST(MonitorProbes, ReadWhatLinuxSays) {
  const auto process = detail::parse_process(
      "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 3 0 100 200 300",
      "Name:\ta\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n",
      "rchar: 5\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n", 100);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->cpu, 3'000'000'000U);
  EXPECT_EQ(process->resident, 1U << 20);
  EXPECT_EQ(process->peak, 2U << 20);
  EXPECT_EQ(process->read, 4096U);
  EXPECT_EQ(process->written, 8192U);
  const auto node = detail::parse_node(
      "cpu  10 1 5 80 4 0 0 0 0 0\ncpu0 5 0 2 40 2 0 0\ncpu1 5 1 3 40 2 0 0\nintr 1\n",
      "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable:  500 kB\n");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->busy, 16U);
  EXPECT_EQ(node->ticks, 100U);
  EXPECT_EQ(node->cpus, 2U);
  EXPECT_EQ(node->available, 500U << 10);
}

TEST(MonitorProbes, TakeNothingFromWhatTheyDoNotUnderstand) {
  EXPECT_FALSE(detail::parse_process("", "", "", 100));
  EXPECT_FALSE(detail::parse_process("7 (a) S 1 7", "VmRSS: 1 kB\n", "", 100));
  EXPECT_FALSE(detail::parse_process("7 (a) S 1 7 7 0 -1 4 1 0 0 0 2 5 0", "", "", 100));
  EXPECT_FALSE(detail::parse_node("", ""));
  EXPECT_FALSE(detail::parse_node("cpu 1 2 3 4\n", "MemTotal: 1 kB\n"));
}

TEST(GpuProbe, AsksTheDriversLibrary) {
  const detail::GpuProbe all(std::nullopt, FAKE_NVML);
  ASSERT_EQ(all.gpus().size(), 2U);
  EXPECT_EQ(all.gpus()[1].name, "GPU-11 Fake GPU");
  const auto samples = all.sample();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[1].utilisation, 41U);
  EXPECT_EQ(samples[0].milliwatts, 123'000U);
  EXPECT_EQ(samples[1].milliwatts, monitoring::kUnknown);
  EXPECT_EQ(samples[0].used, 700U);
  EXPECT_EQ(samples[0].sm_clock, 1500U);
  EXPECT_EQ(samples[0].memory_clock, 2500U);
}

TEST(GpuProbe, LooksAtVisibleGpusOnly) {
  const auto numbers = [](const char* visible) {
    std::vector<uint32_t> found;
    const detail::GpuProbe probe(visible, FAKE_NVML);
    for (const auto& gpu : probe.gpus()) found.push_back(gpu.number);
    return found;
  };
  EXPECT_THAT(numbers("1"), testing::ElementsAre(1));
  EXPECT_THAT(numbers("0,1"), testing::ElementsAre(0, 1));
  EXPECT_THAT(numbers("GPU-00"), testing::ElementsAre(0));
  EXPECT_THAT(numbers(""), testing::IsEmpty());
  EXPECT_THAT(numbers("7"), testing::IsEmpty());
}

TEST(GpuProbe, WithoutTheLibraryThereIsNone) {
  EXPECT_TRUE(detail::GpuProbe(std::nullopt, "libno-such-library.so").gpus().empty());
}

}  // namespace
}  // namespace distributed_utils::monitored
