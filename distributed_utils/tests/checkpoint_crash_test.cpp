// kill -9 during a save: whenever it comes, the newest checkpoint is whole, and it is the one being
// saved or the one before.
#include <gmock/gmock.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <random>
#include <thread>

#include "checkpoint/checkpoint_directory.hpp"
#include "checkpoint_trainer.hpp"
#include "children.hpp"
#include "distributed_utils/checkpoint.hpp"
#include "distributed_utils/collectives.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"
#include "small_run.hpp"

namespace distributed_utils {
namespace {

namespace fs = std::filesystem;

/// Lets a child go on to its n-th stop at a system call (before and after each is one) and kills it
/// there; false if it has ended before that.
bool kill_at_stop(int n, children::Traced& child) {
  for (int stop = 0; stop < n; ++stop) {
    if (!children::next_stop(child)) return false;
  }
  kill(child.pid, SIGKILL);
  children::wait_for(child.pid);
  return true;
}

/// A copy of a directory of checkpoints, to be saved into.
SmallRun run_from(const fs::path& start) {
  const fs::path directory = start.parent_path() / "run";
  fs::remove_all(directory);
  fs::copy(start, directory, fs::copy_options::recursive);
  return SmallRun(directory);
}

TEST(KilledSave, AtEachSystemCallCostsNoCheckpoint) {
  const ranks::TemporaryFolder folder;
  const fs::path start = folder / "start";
  for (const int64_t step : {1, 2}) SmallRun(start).save(step);
  std::map<int64_t, int> newest;
  bool killed = true;
  for (int stop = 1; killed; ++stop) {
    SmallRun run = run_from(start);
    children::Traced child = children::fork_traced([&] { run.save(3); });
    if (children::not_allowed(child)) GTEST_SKIP() << children::kNeedsTracing;
    killed = kill_at_stop(stop, child);
    const int64_t step = run.newest();
    ++newest[step];
    EXPECT_TRUE(step == 2 || step == 3) << "killed at stop " << stop;
    for (const int64_t named : detail::checkpoint_steps(run.directory)) {
      EXPECT_EQ(run.checkpoints.load(named).step(), named) << "killed at stop " << stop;
    }
    run.save(4);  // as if nothing had been
    run.expect_newest(4);
    EXPECT_EQ(std::distance(fs::directory_iterator(run.directory), {}), 2) << stop;
  }
  EXPECT_EQ(newest.size(), 2U);
  EXPECT_GT(newest[2], 100);
  EXPECT_GT(newest[3], 5);
}

TEST(KilledSave, ReplacingTheSameStepAlwaysLeavesOne) {
  const ranks::TemporaryFolder folder;
  const fs::path start = folder / "start";
  SmallRun(start).save(2);
  bool killed = true;
  for (int stop = 1; killed; ++stop) {
    SmallRun run = run_from(start);
    children::Traced child = children::fork_traced([&] { run.save(2); });
    if (children::not_allowed(child)) GTEST_SKIP() << children::kNeedsTracing;
    killed = kill_at_stop(stop, child);
    EXPECT_EQ(run.newest(), 2) << "killed at stop " << stop;
  }
}

TEST(KilledSave, AtRandomMomentsCostsNoCheckpoint) {
  const ranks::TemporaryFolder folder;
  SmallRun run(folder.path());
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  run.save(1);
  const auto one_save = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
  std::mt19937 random(3);
  int64_t last = 1;
  for (int kills = 0; kills < 60; ++kills) {
    const pid_t child = children::fork_child([&] {
      for (int64_t step = last + 1;; ++step) run.save(step);
    });
    std::this_thread::sleep_for(one_save * (random() % 300) / 100);
    kill(child, SIGKILL);
    children::wait_for(child);
    const int64_t newest = run.newest();
    EXPECT_GE(newest, last);
    last = newest;
  }
}

constexpr int64_t kSteps = 30;

/// What a rank of two does that is to train to the end: saving each step to "checkpoints", resuming
/// from what is there; or without any of that.
void train_as_rank(int rank, const fs::path& folder, const std::string& attempt, bool saves) {
  const std::string number = std::to_string(rank);
  setenv("RANK", number.c_str(), 1);
  setenv("LOCAL_RANK", number.c_str(), 1);
  setenv("WORLD_SIZE", "2", 1);
  setenv("LOCAL_WORLD_SIZE", "2", 1);
  setenv("INIT_METHOD", ("file://" + (folder / ("store." + attempt)).string()).c_str(), 1);
  setup();
  Checkpoints checkpoints(folder / "checkpoints");
  checkpoint_test::Trainer trainer({}, saves ? checkpoints.load_latest() : Checkpoint());
  trainer.train(kSteps, saves ? &checkpoints : nullptr);
  save_file(trainer.state(), folder / ((saves ? "resumed." : "whole.") + number));
  barrier();
  destroy_process_group();
}

std::array<pid_t, 2> start_two(const fs::path& folder, const std::string& attempt, bool saves) {
  std::array<pid_t, 2> ranks = {};
  for (int rank = 0; rank < 2; ++rank) {
    ranks[rank] = children::fork_child([&] { train_as_rank(rank, folder, attempt, saves); });
  }
  return ranks;
}

int64_t newest_in(const fs::path& directory) {
  const auto steps = detail::checkpoint_steps(directory);
  return steps.empty() ? 0 : steps.back();
}

/// Until this checkpoint is there.
void wait_for_step(const fs::path& directory, int64_t step) {
  for (int i = 0; i < 60'000 && newest_in(directory) < step; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// The whole story: ranks that are killed while they train and save; those left over, who end with
// an error instead of waiting for ever; new processes that resume, until the run is done.
TEST(KilledRun, ThatIsResumedUntilItIsDoneIsBitForBitTheUninterruptedOne) {
  ranks::run(1, [] {
    // This process has no group; it only starts and kills ranks.
    const fs::path folder = ranks::shared_folder();
    for (const pid_t rank : start_two(folder, "whole", false)) {
      EXPECT_EQ(children::wait_for(rank), 0);
    }
    std::mt19937 random(11);
    const fs::path checkpoints = folder / "checkpoints";
    int kills = 0;
    // One that has come to the last step has none left in which to be killed.
    for (int64_t newest = 0; newest + 4 < kSteps; newest = newest_in(checkpoints)) {
      const auto two = start_two(folder, std::to_string(kills), true);
      wait_for_step(checkpoints, newest + 1 + static_cast<int64_t>(random() % 3));
      kill(two[kills++ % 2], SIGKILL);
      for (const pid_t rank : two) children::wait_for(rank);
    }
    EXPECT_GE(kills, 2);
    for (const pid_t rank : start_two(folder, "last", true)) {
      EXPECT_EQ(children::wait_for(rank), 0);
    }
    for (const char* rank : {"0", "1"}) {
      EXPECT_TRUE(checkpoint_test::same_bits(load_file(folder / ("resumed." + std::string(rank))),
                                             load_file(folder / ("whole." + std::string(rank)))));
    }
  });
}

}  // namespace
}  // namespace distributed_utils
