#include "nearest.hpp"

#include "console/edit_distance.hpp"

#include <gtest/gtest.h>

#include <array>

namespace tasks {
namespace {

TEST(EditDistance, CountsInsertionsDeletionsSubstitutionsAndSwaps) {
  EXPECT_EQ(console::edit_distance("epochs", "epochs"), 0u);
  EXPECT_EQ(console::edit_distance("epoch", "epochs"), 1u);
  EXPECT_EQ(console::edit_distance("epochss", "epochs"), 1u);
  EXPECT_EQ(console::edit_distance("epachs", "epochs"), 1u);
  EXPECT_EQ(console::edit_distance("epcohs", "epochs"), 1u);
  EXPECT_EQ(console::edit_distance("", "seed"), 4u);
  EXPECT_EQ(console::edit_distance("seed", ""), 4u);
  EXPECT_EQ(console::edit_distance("kitten", "sitting"), 3u);
}

TEST(Nearest, IsTheOneWithTheFewestEdits) {
  constexpr std::array<std::string_view, 3> names{"laptop", "seed", "stride"};
  EXPECT_EQ(nearest("latpop", names), "laptop");
  EXPECT_EQ(nearest("sede", names), "seed");
  EXPECT_EQ(nearest("laptop", names), "laptop");
}

}  // namespace
}  // namespace tasks
