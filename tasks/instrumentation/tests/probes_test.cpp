#include "probes.hpp"

#include <gmock/gmock.h>

#include "gpu_probe.hpp"

namespace instrumentation {
namespace {

TEST(Probes, ReadWhatLinuxSays) {
  const auto process = parse_process(
      "7 (a) b) S 1 7 7 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 3 0 100 200 300",
      "Name:\ta\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n",
      "rchar: 5\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n", 100);
  ASSERT_TRUE(process);
  EXPECT_EQ(process->cpu, 3'000'000'000U);
  EXPECT_EQ(process->resident, 1U << 20);
  EXPECT_EQ(process->peak, 2U << 20);
  EXPECT_EQ(process->read, 4096U);
  EXPECT_EQ(process->written, 8192U);
  const auto node =
      parse_node("cpu  10 1 5 80 4 0 0 0 0 0\ncpu0 5 0 2 40 2 0 0\ncpu1 5 1 3 40 2 0 0\nintr 1\n",
                 "MemTotal:  1000 kB\nMemFree: 10 kB\nMemAvailable:  500 kB\n");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->busy, 16U);
  EXPECT_EQ(node->ticks, 100U);
  EXPECT_EQ(node->cpus, 2U);
  EXPECT_EQ(node->available, 500U << 10);
}

TEST(Probes, TakeNothingFromWhatTheyDoNotUnderstand) {
  EXPECT_FALSE(parse_process("", "", "", 100));
  EXPECT_FALSE(parse_process("7 (a) S 1 7", "VmRSS: 1 kB\n", "", 100));
  EXPECT_FALSE(parse_process("7 (a) S 1 7 7 0 -1 4 1 0 0 0 2 5 0", "", "", 100));
  EXPECT_FALSE(parse_node("", ""));
  EXPECT_FALSE(parse_node("cpu 1 2 3 4\n", "MemTotal: 1 kB\n"));
}

TEST(GpuProbe, AsksTheDriversLibrary) {
  const GpuProbe all(std::nullopt, FAKE_NVML);
  ASSERT_EQ(all.gpus().size(), 2U);
  EXPECT_EQ(all.gpus()[1].name, "GPU-11 Fake GPU");
  const auto samples = all.sample();
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[1].utilisation, 41U);
  EXPECT_EQ(samples[0].milliwatts, 123'000U);
  EXPECT_EQ(samples[1].milliwatts, kUnknown);
  EXPECT_EQ(samples[0].used, 700U);
  EXPECT_EQ(samples[0].sm_clock, 1500U);
  EXPECT_EQ(samples[0].memory_clock, 2500U);
}

TEST(GpuProbe, LooksAtVisibleGpusOnly) {
  const auto numbers = [](const char* visible) {
    std::vector<uint32_t> found;
    const GpuProbe probe(visible, FAKE_NVML);
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
  EXPECT_TRUE(GpuProbe(std::nullopt, "libno-such-library.so").gpus().empty());
}

}  // namespace
}  // namespace instrumentation
