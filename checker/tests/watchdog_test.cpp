#include "judge/watchdog.hpp"

#include <gtest/gtest.h>

#include "log_writer.hpp"
#include "support/files.hpp"

namespace checker {
namespace {

// Ranks that spend a share of each second on a processor, wait for one the other share, and a
// watchdog that looks at them every 1.05 seconds.
class WatchdogTest : public ::testing::Test {
 protected:
  void record(const std::string& device) { LogWriter().add(Kind::device, device).write(file_); }

  Watchdog watchdog(double spends, double is_delayed, bool on_gpus = false) {
    make_log(file_, 4096);
    return {{file_}, on_gpus, [=, this](const auto&) {
              return ProcessorUse{spends * look_, is_delayed * look_, is_delayed > 0};
            }};
  }

  // The look at which it calls a halt, and what it calls it.
  std::pair<int, Stall> halt(Watchdog& watchdog) {
    const auto begin = Watchdog::Clock::now();
    for (look_ = 1; look_ < 2000; ++look_) {
      const auto stall = watchdog.look(begin + look_ * std::chrono::milliseconds(1050));
      if (stall != Stall::none) return {look_, stall};
    }
    return {0, Stall::none};
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_.path() / "log";
  int look_ = 0;
};

TEST_F(WatchdogTest, WaitsForAStartThenForProgress) {
  auto dog = watchdog(0, 0);
  const auto begin = Watchdog::Clock::now();
  const auto at = [&](double seconds) {
    return begin + std::chrono::milliseconds(static_cast<int64_t>(1000 * seconds));
  };
  EXPECT_EQ(dog.look(at(1.1)), Stall::none);
  EXPECT_EQ(dog.look(at(10)), Stall::none);  // a program may take long to be loaded
  record("cpu");
  EXPECT_EQ(dog.look(at(11)), Stall::none);
  EXPECT_EQ(dog.look(at(13)), Stall::none);
  dog.line();
  EXPECT_EQ(dog.look(at(15)), Stall::none);
  EXPECT_EQ(dog.look(at(17)), Stall::none);
  EXPECT_EQ(dog.look(at(18.5)), Stall::waiting);
}

// Ranks that are in no collective wait for nobody: the program may sleep for a while.
TEST_F(WatchdogTest, WhatSleepsBetweenCollectivesHasLonger) {
  const auto halt_after = [&](const LogWriter& log) {
    auto dog = watchdog(0.01, 0);
    log.write(file_);
    return halt(dog);
  };
  LogWriter log;
  log.add(Kind::group).add(Kind::collective).add(Kind::completed);
  EXPECT_EQ(halt_after(log), std::pair(13, Stall::waiting));
  EXPECT_EQ(halt_after(LogWriter(log).add(Kind::collective)), std::pair(4, Stall::waiting));
  EXPECT_EQ(halt_after(LogWriter(log).add(Kind::exit)), std::pair(4, Stall::waiting));
}

TEST_F(WatchdogTest, WhatSleepsWaits) {
  auto dog = watchdog(0.01, 0);
  record("cpu");
  EXPECT_EQ(halt(dog), std::pair(4, Stall::waiting));
}

// What has a processor and makes nothing of it has to end.
TEST_F(WatchdogTest, WhatComputesForNothingIsBusy) {
  auto dog = watchdog(0.9, 0);
  record("cpu");
  EXPECT_EQ(halt(dog), std::pair(9, Stall::busy));
}

// On a machine with much other work a rank gets nowhere though it waits for nobody.
TEST_F(WatchdogTest, WhatGetsNoProcessorHasTimeWithoutEnd) {
  auto dog = watchdog(0.01, 0.99);
  record("cpu");
  EXPECT_EQ(halt(dog), std::pair(1143, Stall::too_long));
}

TEST_F(WatchdogTest, WhatGetsAQuarterOfAProcessorHasFourTimesAsLong) {
  auto dog = watchdog(0.25, 0.75);
  record("cpu");
  EXPECT_EQ(halt(dog), std::pair(32, Stall::busy));
}

// A rank that waits for another GPU computes, as far as its processor can tell.
TEST_F(WatchdogTest, OnGpusSilenceIsEnough) {
  auto dog = watchdog(1, 0, /*on_gpus=*/true);
  record("cuda:0");
  EXPECT_EQ(halt(dog), std::pair(9, Stall::waiting));
}

TEST(ProcessorUse, IsOfTheProcessAndAllThatItStarted) {
  const auto before = processor_use({getpid()});
  const auto until = std::clock() + CLOCKS_PER_SEC / 5;
  while (std::clock() < until) {  // busy
  }
  const auto after = processor_use({getpid()});
  EXPECT_GE(after.spent, before.spent + 0.15);
  EXPECT_GE(after.delayed, before.delayed);
  EXPECT_TRUE(after.wants);
}

}  // namespace
}  // namespace checker
