#include "distributed_utils/rank0_first.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <thread>

#include "distributed_utils/error.hpp"
#include "distributed_utils/setup.hpp"
#include "ranks.hpp"
#include "same_error.hpp"

namespace distributed_utils {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::filesystem::path mark(int rank) {
  return ranks::shared_folder() / ("done." + std::to_string(rank));
}
bool has_done(int rank) { return std::filesystem::exists(mark(rank)); }
void do_it(int rank) { std::ofstream(mark(rank)).flush(); }

/// Says that four ranks are of two nodes, as a launcher would.
void pretend_two_nodes(bool in_turn) {
  const int rank = std::atoi(std::getenv("RANK"));
  const int local_rank = in_turn ? rank / 2 : rank % 2;
  setenv("LOCAL_RANK", std::to_string(local_rank).c_str(), 1);
  setenv("LOCAL_WORLD_SIZE", "2", 1);
}

TEST(Rank0First, OtherRanksFindWhatTheFirstHasDone) {
  ranks::run(3, [] {
    const World world = setup();
    const auto seen = rank0_first([&] {
      if (world.rank == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        EXPECT_FALSE(has_done(1) || has_done(2));
      } else {
        EXPECT_TRUE(has_done(0));
      }
      do_it(world.rank);
      return std::make_unique<int>(world.rank);  // which can only be moved
    });
    EXPECT_EQ(*seen, world.rank);
    for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(has_done(rank)) << "all are done after it";
  });
}

class Rank0FirstOnTwoNodes : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Order, Rank0FirstOnTwoNodes, testing::Bool());

TEST_P(Rank0FirstOnTwoNodes, OneRankOfEachBegins) {
  ranks::run(4, [] {
    pretend_two_nodes(GetParam());
    const int rank = setup().rank;
    // Blocks: ranks 0 and 1 on the first node; in turn: 0 and 2.
    const bool is_first = GetParam() ? rank < 2 : rank % 2 == 0;
    const std::vector<int> others = GetParam() ? std::vector{2, 3} : std::vector{1, 3};
    rank0_first([&] {
      for (const int other : others) {
        EXPECT_FALSE(is_first && has_done(other));
      }
      EXPECT_TRUE(is_first || (has_done(0) && has_done(GetParam() ? 1 : 2)));
      do_it(rank);
    });
  });
}

TEST(Rank0First, WhatTheFirstThrowsAllThrow) {
  ranks::run(3, [] {
    const World world = setup();
    const auto throws_on = [&](int rank) {
      return error_of_all_ranks([&] {
        rank0_first([&] {
          do_it(world.rank);
          if (world.rank == rank) throw std::runtime_error("no space left");
        });
      });
    };
    EXPECT_EQ(throws_on(0), "rank 0: no space left");
    EXPECT_FALSE(has_done(1) || has_done(2)) << "no other rank begins";
    EXPECT_EQ(throws_on(2), "rank 2: no space left");
    EXPECT_EQ(throws_on(7), "") << "and all can go on";
  });
}

TEST(Rank0First, WithinAGroup) {
  ranks::run(3, [] {
    const World world = setup();
    const auto group = new_group({2, 1});
    if (!group) return;
    rank0_first(
        [&] {
          EXPECT_EQ(has_done(2), world.rank == 1);
          do_it(world.rank);
        },
        *group);
  });
}

TEST(Rank0First, ASerialProgramJustDoesIt) {
  EXPECT_EQ(rank0_first([] { return 3; }), 3);
  EXPECT_THROW(rank0_first([] { throw std::runtime_error("no"); }), Error);
}

}  // namespace
}  // namespace distributed_utils
