// What the replay program says of a judged run.
#include "plan/plan.hpp"

#include <gmock/gmock.h>

#include "files.hpp"
#include "support/error.hpp"
#include "support/files.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;

Plan plan_of(const std::string& task, uint64_t seed, const TemporaryFolder& folder) {
  return make_plan(fs::path(PROGRAM_FOLDER) / "replay",
                   {.task = task, .seed = seed, .worlds = {{{0}}, {{0, 0, 1}}}}, folder.path(),
                   nullptr);
}

TEST(Plan, SaysWhatARunDoes) {
  const TemporaryFolder folder, other;
  const auto plan = plan_of("language_model", 7, folder);
  EXPECT_EQ(plan.task, "language_model");
  EXPECT_GT(plan.epochs, 1U);
  EXPECT_GT(plan.batch_size, 1U);
  ASSERT_EQ(plan.samples.size(), 3U);
  EXPECT_EQ(plan.samples[1].first, "validation");
  ASSERT_EQ(plan.worlds.size(), 2U);
  ASSERT_EQ(plan.worlds[1].size(), 3U);
  EXPECT_EQ(plan.worlds[1][2].node, 1U);
  EXPECT_EQ(plan.worlds[1][2].local_rank, 0U);
  EXPECT_EQ(plan.worlds[1][1].local_world_size, 2U);
  EXPECT_EQ(plan_of("language_model", 7, other).samples, plan.samples);
}

// What a chapter's plan says comes before what the task chooses; the data stay the same.
TEST(Plan, TakesSettings) {
  const TemporaryFolder folder, own;
  const auto plan = make_plan(
      fs::path(PROGRAM_FOLDER) / "replay",
      {.task = "language_model",
       .seed = 7,
       .worlds = {{{0}}},
       .settings = {{"epochs", "5"}, {"batch_size", "2"}, {"max_steps", "17"}, {"dropout", "0.2"}}},
      folder.path(), nullptr);
  EXPECT_EQ(plan.epochs, 5U);
  EXPECT_EQ(plan.batch_size, 2U);
  EXPECT_EQ(plan.max_steps, 17U);
  EXPECT_EQ(plan.samples, plan_of("language_model", 7, own).samples);
  EXPECT_THROW(make_plan(fs::path(PROGRAM_FOLDER) / "replay",
                         {.task = "language_model",
                          .seed = 7,
                          .worlds = {{{0}}},
                          .settings = {{"no_such_key", "1"}}},
                         folder.path(), nullptr),
               Error);
}

// Batch normalisation looks at the whole batch: two ranks are not one with twice the batch.
TEST(Plan, KnowsWhetherRanksAddUp) {
  const TemporaryFolder words, points;
  EXPECT_TRUE(plan_of("language_model", 7, words).ranks_add_up);
  const auto plan = plan_of("points", 7, points);
  EXPECT_FALSE(plan.ranks_add_up);
  EXPECT_EQ(plan.samples.size(), 5U);
}

// As Megatron lays them out: the first dimension's neighbours are neighbours in rank.
TEST(Plan, APlaceInAMeshCountsTheFirstDimensionFirst) {
  const auto places = places_in({.nodes = {0, 0, 0, 1, 1, 1}, .mesh = {{"tp", 3}, {"dp", 2}}});
  ASSERT_EQ(places.size(), 6U);
  EXPECT_EQ(places[2].mesh, (std::map<std::string, size_t>{{"tp", 2}, {"dp", 0}}));
  EXPECT_EQ(places[4].mesh, (std::map<std::string, size_t>{{"tp", 1}, {"dp", 1}}));
  EXPECT_EQ(places[4].local_rank, 1U);
  EXPECT_TRUE(places_in({.nodes = {0, 0}})[1].mesh.empty());
}

TEST(Plan, OfAnUnknownTaskIsAnError) {
  const TemporaryFolder folder;
  EXPECT_THROW(plan_of("language_modle", 7, folder), Error);
}

}  // namespace
}  // namespace checker
