// kill -9 during a save: whenever it comes, the newest checkpoint is whole, and it is the one being
// saved or the one before.
#include <gmock/gmock.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): kill is POSIX's
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <chrono>
#include <random>
#include <thread>

#include "checkpoint_directory.hpp"
#include "distributed_utils/checkpoint.hpp"
#include "ranks.hpp"
#include "small_run.hpp"

namespace distributed_utils {
namespace {

namespace fs = std::filesystem;

constexpr int kNotAllowed = 77;

/// In a forked child. Torch's threads do not live on in it; with one there are none.
pid_t fork_child(const std::function<void()>& body) {
  torch::set_num_threads(1);
  const pid_t child = fork();
  if (child != 0) return child;
  body();
  _exit(0);
}

int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

/// Lets a child do `body` up to its n-th stop at a system call (before and after each is one) and
/// kills it there. Returns its wait status.
int kill_at_stop(int n, const std::function<void()>& body) {
  const pid_t child = fork_child([&] {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(kNotAllowed);
    raise(SIGSTOP);
    body();
  });
  int status = wait_for(child);
  if (!WIFSTOPPED(status)) return status;
  ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL);
  for (int stop = 0; stop < n; ++stop) {
    ptrace(PTRACE_SYSCALL, child, nullptr, nullptr);
    status = wait_for(child);
    if (!WIFSTOPPED(status)) return status;
  }
  kill(child, SIGKILL);
  return wait_for(child);
}

/// A copy of a directory of checkpoints, to be saved into.
SmallRun run_from(const fs::path& start) {
  const fs::path directory = start.parent_path() / "run";
  fs::remove_all(directory);
  fs::copy(start, directory, fs::copy_options::recursive);
  return SmallRun(directory);
}

bool not_allowed(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == kNotAllowed; }

constexpr const char* kNeedsTracing = "needs leave to trace a child";

TEST(KilledSave, AtEachSystemCallCostsNoCheckpoint) {
  const ranks::TemporaryFolder folder;
  const fs::path start = folder / "start";
  for (const int64_t step : {1, 2}) SmallRun(start).save(step);
  int status = 0;
  std::map<int64_t, int> newest;
  for (int stop = 1; !WIFEXITED(status) || stop == 1; ++stop) {
    SmallRun run = run_from(start);
    status = kill_at_stop(stop, [&] { run.save(3); });
    if (not_allowed(status)) GTEST_SKIP() << kNeedsTracing;
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
  std::printf("killed at %d stops: step 2 was the newest after %d, step 3 after the others\n",
              newest[2] + newest[3] - 1, newest[2]);
}

TEST(KilledSave, ReplacingTheSameStepAlwaysLeavesOne) {
  const ranks::TemporaryFolder folder;
  const fs::path start = folder / "start";
  SmallRun(start).save(2);
  int status = 0;
  for (int stop = 1; !WIFEXITED(status) || stop == 1; ++stop) {
    SmallRun run = run_from(start);
    status = kill_at_stop(stop, [&] { run.save(2); });
    if (not_allowed(status)) GTEST_SKIP() << kNeedsTracing;
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
    const pid_t child = fork_child([&] {
      for (int64_t step = last + 1;; ++step) run.save(step);
    });
    std::this_thread::sleep_for(one_save * (random() % 300) / 100);
    kill(child, SIGKILL);
    wait_for(child);
    const int64_t newest = run.newest();
    EXPECT_GE(newest, last);
    last = newest;
  }
  std::printf("killed 60 times in %d saves\n", static_cast<int>(last));
}

}  // namespace
}  // namespace distributed_utils
