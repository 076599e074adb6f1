#include "distributed_utils/stop_signal.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "distributed_utils/setup.hpp"
#include "ranks.hpp"

namespace distributed_utils {
namespace {

constexpr int kLongRun = 50;

// How many steps a rank makes that gets the signal just before the end of its fourth, if it does.
int steps_until_stopped(bool is_told, int signal) {
  StopSignal stop;
  for (int step = 1; step <= kLongRun; ++step) {
    if (is_told && step == 4) std::raise(signal);
    if (stop.after_step()) return step;
  }
  return kLongRun + 1;
}

TEST(StopSignal, AllRanksStopAfterTheSameStepThoughOneOnlyWasTold) {
  ranks::run(3, [] {
    const World world = setup();
    EXPECT_EQ(steps_until_stopped(world.rank == 1, SIGUSR1), 5);
    EXPECT_EQ(steps_until_stopped(world.rank == 2, SIGTERM), 5);
    EXPECT_EQ(steps_until_stopped(true, SIGTERM), 5);
  });
}

TEST(StopSignal, AnEarlierOnesSignalDoesNotStopTheNext) {
  ranks::run(2, [] {
    setup();
    EXPECT_EQ(steps_until_stopped(true, SIGUSR1), 5);
    EXPECT_EQ(steps_until_stopped(false, SIGUSR1), kLongRun + 1);
  });
}

TEST(StopSignal, AProgramWithoutAProcessGroupHearsItAtOnce) {
  EXPECT_EQ(steps_until_stopped(true, SIGUSR1), 4);
  EXPECT_EQ(steps_until_stopped(false, SIGUSR1), kLongRun + 1);
}

TEST(StopSignal, AfterItsEndTheSignalsDoWhatTheyDid) {
  std::signal(SIGUSR1, SIG_IGN);  // as a trap "" in a job script hands it on
  { const StopSignal stop; }
  struct sigaction now = {};
  sigaction(SIGUSR1, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
  sigaction(SIGTERM, nullptr, &now);
  EXPECT_EQ(now.sa_handler, SIG_DFL);
}

}  // namespace
}  // namespace distributed_utils
