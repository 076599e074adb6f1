#include "process/lines.hpp"

#include <gmock/gmock.h>

namespace checker {
namespace {

using ::testing::ElementsAre;

class LineCutterTest : public ::testing::Test {
 protected:
  std::vector<std::string> lines;
  LineCutter cutter{[this](std::string_view line) { lines.emplace_back(line); }};
};

TEST_F(LineCutterTest, JoinsPiecesToLines) {
  cutter.feed("on");
  cutter.feed("e\n\ntwo\nthr");
  EXPECT_THAT(lines, ElementsAre("one", "", "two"));
  cutter.feed("ee");
  cutter.finish();
  EXPECT_THAT(lines, ElementsAre("one", "", "two", "three"));
  cutter.finish();
  EXPECT_EQ(lines.size(), 4U);
}

TEST_F(LineCutterTest, DropsACarriageReturnBeforeTheEnd) {
  cutter.feed("dos\r\na\rb\n");
  EXPECT_THAT(lines, ElementsAre("dos", "a\rb"));
}

TEST_F(LineCutterTest, CutsEndlessLines) {
  cutter.feed(std::string(2 * LineCutter::longest + 5, 'x'));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].size(), LineCutter::longest);
  cutter.feed("\n");
  EXPECT_EQ(lines.back(), "xxxxx");
}

TEST(RankLabel, HasTheSameWidthForAllRanks) {
  EXPECT_EQ(rank_label(1, 2, -1), "[rank 1] ");
  EXPECT_EQ(rank_label(1, 10, -1), "[rank 1] ");
  EXPECT_EQ(rank_label(1, 11, -1), "[rank  1] ");
  EXPECT_EQ(rank_label(10, 11, -1), "[rank 10] ");
}

}  // namespace
}  // namespace checker
