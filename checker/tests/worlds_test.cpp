// In which worlds a program is judged, on CPUs and on so many GPUs.
#include "judge/worlds.hpp"

#include <gmock/gmock.h>

#include "support/error.hpp"

namespace checker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Nodes = std::vector<size_t>;

Conditions conditions(std::vector<WorldShape> worlds) {
  Conditions made;
  made.worlds = std::move(worlds);
  return made;
}

std::vector<Nodes> nodes_of(const Worlds& worlds) {
  std::vector<Nodes> all;
  for (const auto& shape : worlds.shapes) all.push_back(shape.nodes);
  return all;
}

const auto one_two_five = conditions({{{0}}, {{0, 0}}, {{0, 0, 0, 1, 1}}});

TEST(Worlds, OnCpusAreThoseOfThePlan) {
  const auto worlds = worlds_for(one_two_five, {}, std::nullopt);
  EXPECT_THAT(nodes_of(worlds), ElementsAre(Nodes{0}, Nodes{0, 0}, Nodes{0, 0, 0, 1, 1}));
  EXPECT_THAT(worlds.not_checked, IsEmpty());
}

TEST(Worlds, OnGpusAreOnOneNode) {
  const auto worlds = worlds_for(one_two_five, {}, 8);
  EXPECT_THAT(nodes_of(worlds), ElementsAre(Nodes{0}, Nodes{0, 0}, Nodes(5)));
  EXPECT_THAT(worlds.not_checked, IsEmpty());
}

// With two ranks only, an exchange with a neighbour would look like the mean of all.
TEST(Worlds, ThatAreTooLargeGetAllGpus) {
  const auto worlds = worlds_for(one_two_five, {}, 4);
  EXPECT_THAT(nodes_of(worlds), ElementsAre(Nodes{0}, Nodes{0, 0}, Nodes(4)));
  EXPECT_THAT(worlds.not_checked, ElementsAre("world size 5: there are 4 GPUs here"));
}

TEST(Worlds, ThatBecomeEqualAreTriedOnce) {
  EXPECT_THAT(nodes_of(worlds_for(one_two_five, {}, 2)), ElementsAre(Nodes{0}, Nodes{0, 0}));
  EXPECT_THAT(nodes_of(worlds_for(one_two_five, {}, 1)), ElementsAre(Nodes{0}));
}

TEST(Worlds, ThatSomebodyAskedForAreNotReplaced) {
  const auto worlds = worlds_for(one_two_five, {2, 5}, 4);
  EXPECT_THAT(nodes_of(worlds), ElementsAre(Nodes{0, 0}));
  EXPECT_THAT(worlds.not_checked, ElementsAre("world size 5: there are 4 GPUs here"));
  EXPECT_THROW(worlds_for(one_two_five, {5}, 4), Error);
}

TEST(Worlds, ThatFormAMeshKeepTheirSize) {
  const auto mesh = conditions({{{0}}, {{0, 0, 0, 0}, {{"data", 2}, {"pipe", 2}}}});
  EXPECT_THAT(nodes_of(worlds_for(mesh, {}, 4)), ElementsAre(Nodes{0}, Nodes(4)));
  const auto worlds = worlds_for(mesh, {}, 3);
  EXPECT_THAT(nodes_of(worlds), ElementsAre(Nodes{0}));
  EXPECT_THAT(worlds.not_checked, ElementsAre("world size 4: there are 3 GPUs here"));
}

// The second run starts on as many ranks as there are GPUs for.
TEST(Worlds, OfASecondRunFitToo) {
  const auto resumed = conditions({{.nodes = {0, 0}, .continued = {0, 0, 1}}});
  const auto worlds = worlds_for(resumed, {}, 2);
  ASSERT_EQ(worlds.shapes.size(), 1U);
  EXPECT_EQ(worlds.shapes.front().continued, Nodes(2));
}

TEST(Worlds, NeedAGpuWhereOneIsAskedFor) { EXPECT_THROW(worlds_for(one_two_five, {}, 0), Error); }

}  // namespace
}  // namespace checker
