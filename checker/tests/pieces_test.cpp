// Where pieces of a model lie, and what whole steps they make.
#include "replay/pieces.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace replay {
namespace {

using checker::RankSeen;
using checker::StepSeen;
using ::testing::ElementsAre;

const Flat kModel{0.1, 0.2, 0.3, 0.4, 0.5};

RankSeen rank_with(const Flat& first, const Flat& second) {
  RankSeen rank;
  rank.model = {{.name = "a", .elements = 3, .values = {0.1, 0.2, 0.3}},
                {.name = "b", .elements = 2, .values = {0.4, 0.5}},
                {.name = "c", .buffer = true, .elements = 1, .values = {9}}};
  rank.in_pieces = true;
  rank.parameters = {{.name = "", .elements = first.size()}};
  rank.steps.resize(2);
  rank.steps[0].values = first;
  rank.steps[1].values = second;
  return rank;
}

TEST(Pieces, AreFoundByTheirFirstValues) {
  std::vector<RankSeen> ranks{rank_with({0.4, 0.1}, {4, 1}), rank_with({0.2, 0.3, 0.5}, {2, 3, 5})};
  const Pieces pieces(ranks);
  EXPECT_TRUE(pieces.has(0));
  EXPECT_THAT(pieces.part(0, kModel), ElementsAre(0.4, 0.1));
  EXPECT_THAT(pieces.part(1, {1, 2, 3, 4, 5}), ElementsAre(2, 3, 5));
  EXPECT_EQ(ranks[0].steps[0].values, kModel);
  EXPECT_THAT(ranks[1].steps[1].values, ElementsAre(1, 2, 3, 4, 5));
  ASSERT_EQ(ranks[1].parameters.size(), 2U);
  EXPECT_EQ(ranks[1].parameters[1].name, "b");
  const auto cover = pieces.cover();
  EXPECT_EQ(cover["once"], 5);
  EXPECT_TRUE(pieces.all_known());
  EXPECT_EQ(cover["nowhere"], 0);
}

TEST(Pieces, OfAModelThatWasLoadedAreFoundInThat) {
  const Flat loaded{1, 2, 3, 4, 5};
  auto first = rank_with({4, 1}, {40, 10}), second = rank_with({2, 3, 5}, {20, 30, 50});
  first.steps[0].gradients = {0.4, 0.1};
  second.steps[0].gradients = {0.2, 0.3, 0.5};
  std::vector<RankSeen> ranks{first, second};
  const Pieces pieces(ranks, loaded);
  EXPECT_EQ(pieces.cover()["once"], 5);
  EXPECT_EQ(ranks[1].steps[0].values, loaded);
  EXPECT_EQ(pieces.whole_step(ranks, 0).gradients, kModel);
  std::vector<RankSeen> anew{rank_with({0.4, 0.1}, {4, 1})};
  EXPECT_THAT(Pieces(anew, loaded).cover()["unknown"], ElementsAre(2));
}

TEST(Pieces, OverlapAreMissingOrUnknown) {
  std::vector<RankSeen> ranks{rank_with({0.1, 0.2, 0}, {1, 2, 0}), rank_with({0.2, 0.7}, {8, 7})};
  const Pieces pieces(ranks);
  const auto cover = pieces.cover();
  EXPECT_EQ(cover["elements"], 5);
  EXPECT_EQ(cover["once"], 1);
  EXPECT_EQ(cover["everywhere"], 1);
  EXPECT_EQ(cover["nowhere"], 3);
  EXPECT_THAT(cover["names"], ElementsAre("a", "b"));
  EXPECT_THAT(cover["unknown"], ElementsAre(0, 1)) << "zeros fill up";
  EXPECT_FALSE(pieces.all_known());
  // Of what several hold, the lowest rank's counts.
  EXPECT_THAT(ranks[1].steps[1].values, ElementsAre(1, 2, 0.3, 0.4, 0.5));
}

TEST(Pieces, AWholeModelMayStandInAnotherOrder) {
  auto first = rank_with(kModel, {}), second = rank_with({0.4, 0.5, 0.1, 0.2, 0.3}, {}),
       other = rank_with({7, 8, 9, 6, 5}, {});
  std::vector<RankSeen> ranks{first, second, other};
  for (auto& rank : ranks) {
    rank.in_pieces = false;
    rank.parameters = {{.name = "a", .elements = 3}, {.name = "b", .elements = 2}};
  }
  const Pieces pieces(ranks);
  EXPECT_THAT(pieces.part(0, {1, 2, 3, 4, 5}), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(pieces.part(1, {1, 2, 3, 4, 5}), ElementsAre(4, 5, 1, 2, 3));
  // Of values that are not the model's nobody knows the place.
  EXPECT_THAT(pieces.part(2, {1, 2, 3, 4, 5}), ElementsAre(1, 2, 3, 4, 5));
}

TEST(Pieces, WholeModelsStayAsTheyAre) {
  auto whole = rank_with(kModel, {1, 2, 3, 4, 5});
  whole.in_pieces = false;
  std::vector<RankSeen> ranks{whole};
  const Pieces pieces(ranks);
  EXPECT_FALSE(pieces.any());
  EXPECT_FALSE(pieces.has(0));
  EXPECT_EQ(pieces.part(0, kModel), kModel);
  EXPECT_EQ(ranks[0].steps.size(), 2U);
}

}  // namespace
}  // namespace replay
