// Each piece of work is done once, on several threads that are really there.
#include "tasks/parallel.hpp"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace tasks {
namespace {

class Parallel : public testing::Test {
 protected:
  Parallel() { at::set_num_threads(4); }
  ~Parallel() override { at::set_num_threads(1); }
};

TEST_F(Parallel, EachPieceIsDoneOnce) {
  std::vector<std::atomic<int>> done(1000);
  parallel_for(1000, [&](int64_t i) { ++done[static_cast<size_t>(i)]; });
  for (const auto& times : done) EXPECT_EQ(times, 1);
  parallel_for(0, [](int64_t) { FAIL(); });
}

// Four pieces wait for each other: fewer threads would never come to an end.
TEST_F(Parallel, AsManyAtATimeAsTorchHasThreads) {
  std::barrier together(4);
  std::atomic<int> threads_of_torch{0};
  parallel_for(4, [&](int64_t) {
    threads_of_torch += at::get_num_threads();
    together.arrive_and_wait();
  });
  EXPECT_EQ(threads_of_torch, 4) << "one in each";
  EXPECT_EQ(at::get_num_threads(), 4);
}

// Two pieces wait for each other, while torch has one thread.
TEST_F(Parallel, AsManyAtATimeAsAreSet) {
  at::set_num_threads(1);
  set_parallel_threads(2);
  std::barrier together(2);
  parallel_for(2, [&](int64_t) { together.arrive_and_wait(); });
  EXPECT_EQ(parallel_threads(), 2);
  set_parallel_threads(0);
  EXPECT_EQ(parallel_threads(), 1);
}

TEST_F(Parallel, RanksOfAMachineShareItsCores) {
  unsetenv("LOCAL_WORLD_SIZE");
  const int cores = cores_of_rank();
  EXPECT_GE(cores, 1);
  setenv("LOCAL_WORLD_SIZE", "2", /*overwrite=*/1);
  EXPECT_EQ(cores_of_rank(), std::max(1, cores / 2));
  setenv("LOCAL_WORLD_SIZE", "100000", 1);
  EXPECT_EQ(cores_of_rank(), 1);
  unsetenv("LOCAL_WORLD_SIZE");
}

TEST_F(Parallel, WhatIsThrownComesOut) {
  std::atomic<int> done{0};
  EXPECT_THROW(parallel_for(100'000,
                            [&](int64_t i) {
                              ++done;
                              if (i == 10) throw std::runtime_error("a damaged file");
                            }),
               std::runtime_error);
  EXPECT_LT(done, 100'000);
  parallel_for(8, [&](int64_t) { ++done; });  // the threads are still there
}

TEST_F(Parallel, AProcessThatForksHasThreadsOfItsOwn) {
  parallel_for(8, [](int64_t) {});
  const auto child = fork();
  if (child == 0) {
    std::atomic<int64_t> sum{0};
    parallel_for(8, [&](int64_t i) { sum += i; });
    _exit(sum == 28 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tasks
