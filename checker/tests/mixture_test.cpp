// What the numbers of a wrong result are made of.
#include "judge/rules/mixture.hpp"

#include <gmock/gmock.h>

namespace checker::rules {
namespace {

using ::testing::Optional;

const std::vector<Numbers> kRanks{{1, 20}, {300, 7}, {11, 5000}};
constexpr double kClose = 1e-9;

TEST(Mixture, SaysWhoseNumbersAreInASum) {
  EXPECT_THAT(mixture({312, 5027}, kRanks, kClose),
              Optional(std::string("rank 0 + rank 1 + rank 2")));
  EXPECT_THAT(mixture({323, 10027}, kRanks, kClose),
              Optional(std::string("rank 0 + rank 1 + 2 x rank 2")));
  EXPECT_THAT(mixture({300, 7}, kRanks, kClose), Optional(std::string("rank 1 alone")));
  EXPECT_EQ(mixture({312, 5028}, kRanks, kClose), std::nullopt);
  EXPECT_EQ(mixture({0, 0}, kRanks, kClose), std::nullopt);
  EXPECT_EQ(mixture({4}, {{1}, {3}}, kClose), std::nullopt) << "one number may be a sum by chance";
}

TEST(Mixture, SaysHowManyTimesTheExpectedNumbersAreThere) {
  EXPECT_THAT(factor({4, 8}, {3, 6}, kClose), Optional(std::string("4/3")));
  EXPECT_THAT(factor({6, 12}, {3, 6}, kClose), Optional(std::string("2")));
  EXPECT_EQ(factor({6, 11}, {3, 6}, kClose), std::nullopt);
  EXPECT_EQ(factor({3, 6}, {3, 6}, kClose), std::nullopt);
}

TEST(Mixture, KnowsNumbersInAnotherOrder) {
  EXPECT_TRUE(reordered({1, 3, 2}, {3, 2, 1}, kClose));
  EXPECT_FALSE(reordered({1, 3, 3}, {3, 2, 1}, kClose));
}

}  // namespace
}  // namespace checker::rules
