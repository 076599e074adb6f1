// Whether ranks that share a GPU got one of their own: no machine without GPUs shows it in a run.
#include <gmock/gmock.h>

#include "files.hpp"
#include "judge/rules/rules.hpp"
#include "judge/tell.hpp"

namespace checker {
namespace {

using testing::course;

// Two ranks of one node that joined each other, after asking setup() for this device.
RecordedRun both_on(const std::string& device, const std::string& asked) {
  RecordedRun recorded;
  recorded.run.world = 2;
  for (uint32_t number = 0; number < 2; ++number) {
    RankSeen rank;
    rank.place.rank = number;
    rank.groups = {{.rank = number, .size = 2, .name = "world", .members = {0, 1}}};
    rank.setups = {{.backend = "nccl", .device = asked}};
    rank.devices = {device};
    recorded.run.ranks.push_back(std::move(rank));
  }
  return recorded;
}

// Of what the rule sees in step 02.
Findings found(const RecordedRun& recorded) {
  const ExpectedWorld truth{};
  const Plan plan;
  const auto& step = course().step("02");
  Symptoms symptoms;
  rules::membership({recorded, truth, plan, course(), step, {"SETUP"}, {}}, symptoms);
  return tell(course(), step, symptoms);
}

TEST(Membership, AGpuThatIsPickedByHandIsAnotherTodosThanSetup) {
  const auto by_hand = found(both_on("cuda:0", "cuda"));
  ASSERT_EQ(by_hand.size(), 1U);
  EXPECT_EQ(by_hand[0].id, "ranks_share_a_gpu");
  EXPECT_EQ(by_hand[0].todo, 2);
  EXPECT_EQ(by_hand[0].kind, FindingKind::not_started) << "the statement was there before";
  EXPECT_EQ(found(both_on("cuda:0", "")).at(0).todo, 2);

  const auto as_told = found(both_on("cuda:0", "cuda:0"));
  ASSERT_EQ(as_told.size(), 1U);
  EXPECT_EQ(as_told[0].todo, 3) << "setup() was told to";
  EXPECT_EQ(as_told[0].kind, FindingKind::mistake);

  EXPECT_TRUE(found(both_on("cpu", "cpu")).empty());
}

}  // namespace
}  // namespace checker
