// Whether what ranks say they exchanged can have passed between them.
#include "judge/traffic.hpp"

#include "files.hpp"
#include "judge/tell.hpp"

#include <gmock/gmock.h>

namespace checker {
namespace {

// A run in which every rank claims these collectives, of so many elements.
RecordedRun recorded(uint32_t world, const std::vector<uint64_t>& elements, bool completed = true) {
  RecordedRun recorded;
  recorded.run.world = world;
  for (uint32_t number = 0; number < world; ++number) {
    auto& rank = recorded.run.ranks.emplace_back();
    rank.groups.push_back({.number = 0, .rank = number, .size = world, .name = "", .members = {}});
    for (const auto count : elements) {
      CollectiveSeen seen{};
      seen.call.elements = count;
      seen.completed = completed;
      rank.collectives.push_back(seen);
    }
  }
  return recorded;
}

bool believed(const std::vector<RecordedRun>& runs, uint64_t passed) {
  return !missing_traffic(runs, passed);
}

TEST(Traffic, OfNRanksNMinusOneReceiveWhatOneHolds) {
  EXPECT_TRUE(believed({recorded(2, {1000})}, 4000));
  EXPECT_FALSE(believed({recorded(2, {1000})}, 3999));
  EXPECT_TRUE(believed({recorded(3, {1000, 10})}, 8080));
  EXPECT_FALSE(believed({recorded(3, {1000, 10})}, 8079));
  EXPECT_FALSE(believed({recorded(2, {1000}), recorded(3, {1000})}, 11'999));
}

TEST(Traffic, ARankAloneAndWhatNeverEndedNeedNone) {
  EXPECT_TRUE(believed({recorded(1, {1000})}, 0));
  EXPECT_TRUE(believed({recorded(2, {1000}, false)}, 0));
}

TEST(Traffic, AnAbsurdSizeOverflowsNothing) {
  EXPECT_FALSE(believed({recorded(2, {~0ULL, ~0ULL, ~0ULL})}, 1'000'000));
  EXPECT_TRUE(believed({recorded(2, {~0ULL})}, 1ULL << 40));
}

TEST(Traffic, TheFindingSaysBothNumbers) {
  const auto symptom = missing_traffic({recorded(2, {1000})}, 17);
  ASSERT_TRUE(symptom);
  const auto finding = tell(testing::course(), testing::course().step("05"), *symptom);
  EXPECT_EQ(finding.todo, 3);
  EXPECT_THAT(finding.evidence, ::testing::ElementsAre(::testing::HasSubstr("4000 bytes"),
                                                       ::testing::HasSubstr("17 bytes")));
}

}  // namespace
}  // namespace checker
