// Which ranks form the groups of a mesh.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "distributed_utils/error.hpp"
#include "distributed_utils/mesh.hpp"

namespace distributed_utils {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Ranks = std::vector<int>;
using Groups = std::vector<Ranks>;

Ranks group_of(int rank, const Groups& groups) {
  for (const auto& group : groups) {
    if (std::ranges::find(group, rank) != group.end()) return group;
  }
  return {};
}

// The tables were computed with Megatron-LM's generate_masked_orthogonal_rank_groups
// (megatron/core/parallel_state.py).
TEST(RankGroups, OfRankFiveOfSixteenAreMegatrons) {
  const MeshSizes sizes = {.tp = 2, .cp = 2, .pp = 2, .dp = 2};
  const auto of_five = [&](std::string_view dims) {
    return group_of(5, rank_groups(sizes, "tp-cp-dp-pp", dims));
  };
  EXPECT_THAT(of_five("tp"), ElementsAre(4, 5));
  EXPECT_THAT(of_five("cp"), ElementsAre(5, 7));
  EXPECT_THAT(of_five("dp"), ElementsAre(1, 5));
  EXPECT_THAT(of_five("pp"), ElementsAre(5, 13));
  EXPECT_THAT(of_five("dp-cp"), ElementsAre(1, 3, 5, 7));
  EXPECT_THAT(of_five("tp-pp"), ElementsAre(4, 5, 12, 13));
  EXPECT_THAT(of_five("tp-cp-dp"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST(RankGroups, OfTwelveRanksAreMegatronsInEveryOrder) {
  const MeshSizes sizes = {.tp = 2, .cp = 1, .pp = 2, .dp = 3};
  struct Case {
    const char *order, *dims;
    Groups groups;
  };
  const std::vector<Case> cases = {
      {"tp-cp-dp-pp", "tp", {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}}},
      {"tp-cp-dp-pp", "dp", {{0, 2, 4}, {1, 3, 5}, {6, 8, 10}, {7, 9, 11}}},
      {"tp-cp-dp-pp", "pp", {{0, 6}, {1, 7}, {2, 8}, {3, 9}, {4, 10}, {5, 11}}},
      {"tp-cp-dp-pp", "tp-pp", {{0, 1, 6, 7}, {2, 3, 8, 9}, {4, 5, 10, 11}}},
      {"pp-dp-cp-tp", "tp", {{0, 6}, {1, 7}, {2, 8}, {3, 9}, {4, 10}, {5, 11}}},
      {"pp-dp-cp-tp", "dp", {{0, 2, 4}, {1, 3, 5}, {6, 8, 10}, {7, 9, 11}}},
      {"pp-dp-cp-tp", "pp", {{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}}},
      {"tp-cp-pp-dp", "dp", {{0, 4, 8}, {1, 5, 9}, {2, 6, 10}, {3, 7, 11}}},
      {"tp-cp-pp-dp", "pp", {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}}},
      {"tp-cp-pp-dp", "tp-pp", {{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}}},
  };
  for (const auto& [order, dims, groups] : cases) {
    EXPECT_EQ(rank_groups(sizes, order, dims), groups) << order << ", " << dims;
  }
}

// A rank's coordinate along a dimension is its number divided by the sizes of the inner ones.
TEST(RankGroups, ConnectRanksThatAgreeInAllOtherDimensions) {
  std::mt19937 random(7);
  const auto draw = [&] { return static_cast<int>(1 + random() % 3); };
  for (int round = 0; round < 60; ++round) {
    const MeshSizes sizes = {.tp = draw(), .cp = draw(), .pp = draw(), .dp = draw()};
    std::vector<std::pair<std::string, int>> mesh = {
        {"tp", sizes.tp}, {"cp", sizes.cp}, {"dp", sizes.dp}, {"pp", sizes.pp}};
    std::ranges::shuffle(mesh, random);
    const auto order =
        fmt::format("{}-{}-{}-{}", mesh[0].first, mesh[1].first, mesh[2].first, mesh[3].first);
    const auto& first = mesh[random() % 4].first;
    const auto& second = mesh[random() % 4].first;
    const auto dims = first == second ? first : second + "-" + first;
    const int world = sizes.tp * sizes.cp * sizes.pp * sizes.dp;
    const auto place_outside = [&](int rank) {
      std::vector<int> place;
      for (const auto& [name, size] : mesh) {
        if (name != first && name != second) place.push_back(rank % size);
        rank /= size;
      }
      return place;
    };
    const auto groups = rank_groups(sizes, order, dims);
    for (int rank = 0; rank < world; ++rank) {
      Ranks wanted;
      for (int other = 0; other < world; ++other) {
        if (place_outside(other) == place_outside(rank)) wanted.push_back(other);
      }
      EXPECT_EQ(group_of(rank, groups), wanted) << order << ", " << dims << " of rank " << rank;
    }
  }
}

TEST(RankGroups, DoNotDependOnTheOrderInWhichTheyAreAskedFor) {
  const MeshSizes sizes = {.tp = 1, .cp = 2, .pp = 1, .dp = 3};
  EXPECT_EQ(rank_groups(sizes, "tp-cp-dp-pp", "dp-cp"), rank_groups(sizes, "tp-cp-dp-pp", "cp-dp"));
  EXPECT_EQ(rank_groups(sizes, "cp-dp", "dp"), rank_groups(sizes, "tp-cp-dp-pp", "dp"));
}

TEST(RankGroups, RefuseNamesAndSizesThatMakeNoMesh) {
  const MeshSizes sizes = {.tp = 2, .cp = 1, .pp = 1, .dp = 3};
  const auto expect_refused = [&](std::string_view order, std::string_view dims,
                                  const std::string& text) {
    EXPECT_THAT([&] { rank_groups(sizes, order, dims); }, ThrowsMessage<Error>(HasSubstr(text)));
  };
  expect_refused("tp-cp-dp-xp", "tp", "order 'tp-cp-dp-xp' names the dimension 'xp'");
  expect_refused("tp-cp-dp-tp", "tp", "order 'tp-cp-dp-tp' names 'tp' twice");
  expect_refused("tp-cp-pp", "tp", "leaves out dp, which has size 3");
  expect_refused("tp-cp-dp-pp", "ep", "group 'ep' names the dimension 'ep'");
  expect_refused("tp-cp-dp-pp", "dp-dp", "names 'dp' twice");
  expect_refused("tp-cp-dp-pp", "", "''");
  EXPECT_THAT([] { rank_groups({.tp = 2}, "tp-cp-dp-pp", "tp"); },
              ThrowsMessage<Error>(HasSubstr("dp 0: every size must be at least 1")));
}

TEST(Fitted, GivesDataParallelismTheRestOfTheWorld) {
  EXPECT_EQ(fitted({}, 6).dp, 6);
  EXPECT_EQ(fitted({.tp = 2, .pp = 2}, 16).dp, 4);
  EXPECT_EQ(fitted({.tp = 2, .dp = 3}, 6).dp, 3);
  EXPECT_THAT([] { fitted({.tp = 2, .pp = 2}, 6); },
              ThrowsMessage<Error>(HasSubstr("6 ranks cannot be arranged as tp 2 x cp 1 x pp 2, "
                                             "which takes a multiple of 4")));
  EXPECT_THAT([] { fitted({.tp = 2, .dp = 2}, 6); },
              ThrowsMessage<Error>(HasSubstr("tp 2 x cp 1 x pp 1 x dp 2, which takes 4")));
  EXPECT_THAT([] { fitted({.tp = 0}, 4); }, ThrowsMessage<Error>(HasSubstr("tp 0")));
  EXPECT_THAT([] { fitted({.dp = -1}, 4); }, ThrowsMessage<Error>(HasSubstr("dp -1")));
}

}  // namespace
}  // namespace distributed_utils
