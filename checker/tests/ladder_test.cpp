#include "ladder/ladder.hpp"

#include <gmock/gmock.h>

#include "files.hpp"
#include "support/error.hpp"

namespace checker {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::LadderCopy;

TEST(Ladder, OfThisProjectIsSound) {
  const auto ladder = load_ladder(testing::project_ladder());
  ASSERT_GE(ladder.steps.size(), 7U);
  EXPECT_EQ(ladder.steps[0].name, "01_serial");
  EXPECT_TRUE(ladder.steps[0].todos.empty());
  EXPECT_EQ(ladder.steps[1].todos, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(ladder.file_of(ladder.todos.at(10)), "steps/05_all_reduce_loss/train.cpp");
  EXPECT_EQ(ladder.file_of(ladder.todos.at(17)), "sbatch/07_multi_node.sbatch");
}

TEST(Ladder, FindsStepsByNumberAndName) {
  const auto ladder = load_ladder(testing::project_ladder());
  EXPECT_EQ(ladder.step("2").name, "02_setup");
  EXPECT_EQ(ladder.step("02").name, "02_setup");
  EXPECT_EQ(ladder.step("02_setup").name, "02_setup");
  EXPECT_THROW(ladder.step("77"), UsageError);
  EXPECT_THAT(error_of([&] { ladder.step("x"); }), HasSubstr("01_serial, 02_setup"));
}

struct Spoilt {
  const char* name;
  const char* file;
  const char* text;
  const char* by;
  const char* error;
};

class SpoiltLadder : public ::testing::TestWithParam<Spoilt> {};

TEST_P(SpoiltLadder, IsRefusedSayingWhatAndWhere) {
  const auto& spoilt = GetParam();
  const LadderCopy ladder;
  ladder.replace(spoilt.file, spoilt.text, spoilt.by);
  EXPECT_THAT(error_of([&] { load_ladder(ladder.path()); }), HasSubstr(spoilt.error));
}

INSTANTIATE_TEST_SUITE_P(
    All, SpoiltLadder,
    ::testing::Values(
        Spoilt{"Syntax", "ladder.yaml", "steps:", "steps: [", "ladder.yaml:"},
        Spoilt{"NoWorlds", "ladder.yaml", "[[0], [0, 0], [0, 0, 1]]", "3",
               "worlds must be a list, in square brackets."},
        Spoilt{"UnknownKey", "todos/04.yaml",
               "hint:", "hnit:", "unknown key hnit, did you mean hint?"},
        Spoilt{"UnknownStepKey", "ladder.yaml", "    title:", "    titel:", "unknown key titel"},
        Spoilt{"MissingKey", "todos/04.yaml", "title:", "#", "04.yaml:2: the key title is missing"},
        Spoilt{"EmptyText", "todos/05.yaml", "title: Deal out the training data",
               "title:", "title must be a text"},
        Spoilt{"TwoLines", "todos/05.yaml", "title: Deal out", "title: |\n  Deal\n  out",
               "title must be one line"},
        Spoilt{"Needs", "todos/05.yaml", "needs: [4]", "needs: [99]", "needs names TODO 99"},
        Spoilt{"StepNumber", "ladder.yaml", "name: 03_sampler", "name: 04_sampler",
               "must begin with the step's number, 3"},
        Spoilt{"TodoOrder", "ladder.yaml", "[1, 2, 3]", "[1, 3, 2]",
               "TODO 3 stands where TODO 2 is due"},
        Spoilt{"NoList", "ladder.yaml", "[1, 2, 3]", "none", "todos must be a list"},
        Spoilt{"WrongStep", "todos/08.yaml", "step: 04_ddp", "step: 05_all_reduce_loss",
               "its step is 05_all_reduce_loss, but ladder.yaml lists it in 04_ddp"},
        Spoilt{"UnlistedTodo", "ladder.yaml", "[14, 15, 16, 17]", "[14, 15, 16]",
               "17.yaml: no step in ladder.yaml lists this TODO"},
        Spoilt{"MissingTodo", "ladder.yaml", "[14, 15, 16, 17]", "[14, 15, 16, 17, 18]", "18.yaml"},
        Spoilt{"UnknownFeature", "trainer.cpp", "#if SAMPLER", "#if SAMPLERS",
               "no TODO or step switches the feature SAMPLERS on, did you mean SAMPLER?"},
        Spoilt{"UnusedFeature", "todos/09.yaml", "[SET_EPOCH]", "[SET_EPOCH, EXTRA]",
               "09.yaml: no source has an #if EXTRA"},
        Spoilt{"UnknownPlace", "trainer.cpp", "//@todo 9", "//@todo 99", "there is no TODO 99"},
        Spoilt{"NoPlace", "trainer.cpp", "//@todo 9", "", "09.yaml: this TODO needs its place in"},
        Spoilt{"TwoFiles", "job.sbatch", "#@todo 15", "#@todo 9",
               "either trainer.cpp or job.sbatch, not in both"},
        Spoilt{"MarkOfTwoStatements", "trainer.cpp", "//@set_epoch", "//@epochs",
               ": the mark epochs is also on line"},
        Spoilt{"NoHereToo", "todos/10.yaml", "here_too:", "#",
               "here_too is for TODOs with several places"},
        Spoilt{"NeedlessHereToo", "todos/09.yaml",
               "title:", "here_too: x\ntitle:", "here_too is for TODOs with several places"}),
    [](const auto& parameter) { return parameter.param.name; });

TEST(Ladder, KnowsTheTodoThatSwitchesAFeatureOn) {
  const auto ladder = load_ladder(testing::project_ladder());
  EXPECT_EQ(ladder.todo_of("DDP"), 8);
  EXPECT_EQ(ladder.todo_of("SETUP"), 3);  // the last of those that do
  EXPECT_THAT(error_of([&] { ladder.todo_of("SETPU"); }),
              HasSubstr("no TODO that switches the feature SETPU on, did you mean SETUP?"));
  // What comes ready-made with a step is no TODO's.
  EXPECT_THAT(error_of([&] { ladder.todo_of("CHECKPOINT"); }), HasSubstr("no TODO that switches"));
}

TEST(Ladder, AMissingFileIsNamed) {
  const LadderCopy ladder;
  std::filesystem::remove(ladder.path() / "trainer.cpp");
  EXPECT_THAT(error_of([&] { load_ladder(ladder.path()); }),
              ::testing::AllOf(HasSubstr("trainer.cpp"), HasSubstr("No such file")));
}

}  // namespace
}  // namespace checker
