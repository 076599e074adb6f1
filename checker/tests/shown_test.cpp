// What the judge says of numbers that an exercise shows, and of lines that a trainer prints.
#include <gmock/gmock.h>

#include <algorithm>

#include "files.hpp"
#include "instrumentation/numbers.hpp"
#include "judge/rules/printed.hpp"
#include "judge/rules/rules.hpp"
#include "judge/tell.hpp"

namespace checker {
namespace {

using testing::course;
using ::testing::HasSubstr;

using Numbers = std::vector<double>;

constexpr uint64_t kSeed = 5;

// Two ranks' numbers, one behind the other.
Numbers all_numbers(size_t each) {
  auto all = instrumentation::numbers_of_rank(kSeed, 0, each);
  const auto other = instrumentation::numbers_of_rank(kSeed, 1, each);
  all.insert(all.end(), other.begin(), other.end());
  return all;
}

// What two ranks do that show the same under this name. left: they have left the group before.
Finding shown(const std::string& exercise, const std::string& name, std::vector<int64_t> sizes,
              const Numbers& numbers, bool left = false) {
  RecordedRun recorded;
  recorded.run.world = 2;
  for (int number = 0; number < 2; ++number) {
    auto& rank = recorded.run.ranks.emplace_back();
    rank.place.rank = static_cast<size_t>(number);
    rank.left_regularly = true;
    if (left) rank.shutdown_event = 0;
    rank.results.push_back({{.name = name, .sizes = sizes, .values = numbers}, 1});
  }
  Plan plan;
  plan.seed = kSeed;
  plan.tolerance = 1e-9;
  const auto& step = course().step(exercise);
  const ExpectedWorld truth{};
  Symptoms symptoms;
  rules::shown_results({recorded, truth, plan, course(), step, {}, {}}, symptoms);
  const auto findings = tell(course(), step, symptoms);
  return findings.empty() ? Finding{} : findings.front();
}

TEST(ShownResults, OfAnotherShapeAreToldSo) {
  const auto all = all_numbers(4);
  EXPECT_EQ(shown("C5", "all", {2, 4}, all).id, "");
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{8}, {4, 2}, {2, 1, 4}}) {
    EXPECT_THAT(shown("C5", "all", sizes, all).why, HasSubstr("other sizes than the task says"));
  }
  EXPECT_THAT(shown("C5", "all", {4}, {1, 2, 3, 4}).why, HasSubstr("other sizes"));
}

TEST(ShownResults, InAnotherOrderAreToldSo) {
  auto all = all_numbers(4);
  std::rotate(all.begin(), all.begin() + 4, all.end());
  EXPECT_THAT(shown("C5", "all", {2, 4}, all).why, HasSubstr("in another order"));
  all[0] += 0.5;
  EXPECT_THAT(shown("C5", "all", {2, 4}, all).why, HasSubstr("Compare the result"));
}

// Each rank has three numbers for each of two ranks, and shows every second sum.
TEST(ShownResults, FromOtherPlacesOfTheSumAreToldSo) {
  const auto one = instrumentation::numbers_of_rank(kSeed, 0, 6),
             other = instrumentation::numbers_of_rank(kSeed, 1, 6);
  Numbers every_second;
  for (size_t i = 0; i < 6; i += 2) every_second.push_back(one[i] + other[i]);
  const auto finding = shown("C6", "part", {3}, every_second);
  EXPECT_THAT(finding.why, HasSubstr("those of other places"));
  ASSERT_FALSE(finding.evidence.empty());
  EXPECT_THAT(finding.evidence.front(), HasSubstr("these are 0, 2, 4"));
}

TEST(ShownResults, OfARankThatHasLeftItsGroupAreToldSo) {
  EXPECT_THAT(shown("C1", "rank", {}, {0}, true).why, HasSubstr("Without a group"));
  EXPECT_THAT(shown("C1", "rank", {}, {0}).why, HasSubstr("setup() returns all three"));
}

TEST(PrintedLines, HoldWhatPrintfWouldReplace) {
  EXPECT_EQ(rules::unformatted({"epoch 1", "test loss: %s"}), "test loss: %s");
  for (const auto* line : {"%d epochs", "loss %.3f", "loss %5.2lf nats"}) {
    EXPECT_EQ(rules::unformatted({line}), line);
  }
  for (const auto* line : {"50 % done", "50%done", "100 %", "test loss: 2.5", "100%% sure"}) {
    EXPECT_EQ(rules::unformatted({line}), std::nullopt) << line;
  }
}

}  // namespace
}  // namespace checker
