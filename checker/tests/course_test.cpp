#include "course/course.hpp"

#include <gmock/gmock.h>

#include <map>

#include "files.hpp"
#include "support/error.hpp"

namespace checker {
namespace {

using testing::CourseCopy;
using testing::error_of;
using ::testing::HasSubstr;

TEST(Course, OfThisProjectIsSound) {
  const auto course = load_course(testing::chapters_folder());
  ASSERT_GE(course.steps.size(), 7U);
  EXPECT_EQ(course.steps[0].name, "01_serial");
  EXPECT_TRUE(course.steps[0].todos.empty());
  EXPECT_EQ(course.steps[1].todos, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(course.file_of(course.todos.at(10)), "steps/05_all_reduce_loss/train.cpp");
  EXPECT_EQ(course.file_of(course.todos.at(17)), "sbatch/07_multi_node.sbatch");
}

// Published numbers never move: students' notes, hand-ins and slides name them.
TEST(Course, NumbersStayWhatTheyWere) {
  const std::map<std::string, std::vector<int>> published{{"01_serial", {}},
                                                          {"02_setup", {1, 2, 3}},
                                                          {"03_sampler", {4, 5, 6, 7}},
                                                          {"04_ddp", {8, 9}},
                                                          {"05_all_reduce_loss", {10}},
                                                          {"06_rank_zero", {11, 12, 13}},
                                                          {"07_multi_node", {14, 15, 16, 17}}};
  // What later chapters may use, by the labels of their steps: the first and the last TODO.
  const std::map<std::string, std::pair<int, int>> reserved{
      {"08", {18, 21}}, {"09", {22, 25}}, {"10", {26, 30}}, {"11", {31, 38}},
      {"12", {39, 41}}, {"13", {42, 44}}, {"14", {45, 47}}, {"15", {48, 54}},
      {"16", {48, 54}}, {"17", {55, 58}}, {"18", {59, 62}}, {"19", {63, 66}}};
  for (const auto& [name, todos] : published) EXPECT_EQ(testing::course().step(name).todos, todos);
  for (const auto& step : testing::course().steps) {
    if (published.contains(step.name) || step.label().front() == 'C') continue;
    const auto [first, last] = reserved.at(step.label());
    for (const int todo : step.todos) EXPECT_TRUE(todo >= first && todo <= last) << step.name;
  }
}

// Which mistakes a judgement can see depends on its plans, and three are drawn four apart.
TEST(Course, ThreePlansThatAreDrawnTogetherShowEveryKindOfMistake) {
  const auto& plans = testing::course().step("04").conditions;
  ASSERT_EQ(plans.size(), 12U);
  for (size_t first = 0; first < 4; ++first) {
    std::map<std::string, int> settings;
    bool alone = false, many_epochs = false;
    for (size_t number = first; number < plans.size(); number += 4) {
      for (const auto& [name, value] : plans[number].settings) {
        ++settings[name];
        many_epochs = many_epochs || (name == "epochs" && std::stoi(value) > 3);
      }
      for (const auto& world : plans[number].worlds) alone = alone || world.size() == 1;
    }
    EXPECT_GT(settings["dropout"], 0) << first;
    EXPECT_GT(settings["max_steps"], 0) << first;
    EXPECT_TRUE(alone && many_epochs) << first;
  }
}

TEST(Course, FindsStepsByNumberAndName) {
  const auto course = load_course(testing::chapters_folder());
  EXPECT_EQ(course.step("2").name, "02_setup");
  EXPECT_EQ(course.step("02").name, "02_setup");
  EXPECT_EQ(course.step("02_setup").name, "02_setup");
  EXPECT_THROW(course.step("77"), UsageError);
  EXPECT_THAT(error_of([&] { course.step("x"); }), HasSubstr("01_serial, 02_setup"));
}

struct Spoilt {
  const char* name;
  const char* file;
  const char* text;
  const char* by;
  const char* error;
};

TEST(Course, AWorldMayHaveARunThatGoesOnFromIt) {
  const CourseCopy copy;
  copy.replace("chapter.yaml",
               "worlds: [[0], [0, 0], [0, 0, 1]], settings: {epochs: 3, batch_size: 3}",
               "worlds: [[0], {nodes: [0, 0], continued: [0, 0, 1]}]");
  const auto course = load_course(copy.path());
  const auto& worlds = course.step("02").conditions.front().worlds;
  EXPECT_TRUE(worlds.at(0).continued.empty());
  EXPECT_EQ(worlds.at(1).size(), 2U);
  EXPECT_EQ(worlds.at(1).continued, (std::vector<size_t>{0, 0, 1}));
}

class SpoiltCourse : public ::testing::TestWithParam<Spoilt> {};

TEST_P(SpoiltCourse, IsRefusedSayingWhatAndWhere) {
  const auto& spoilt = GetParam();
  const CourseCopy course;
  course.replace(spoilt.file, spoilt.text, spoilt.by);
  EXPECT_THAT(error_of([&] { load_course(course.path()); }), HasSubstr(spoilt.error));
}

INSTANTIATE_TEST_SUITE_P(
    All, SpoiltCourse,
    ::testing::Values(
        Spoilt{"Syntax", "chapter.yaml", "steps:", "steps: [", "chapter.yaml:"},
        Spoilt{"NoWorlds", "chapter.yaml",
               "[[0], [0, 0], [0, 0, 1]], settings: {epochs: 3, batch_size: 3}", "3",
               "worlds must be a list of worlds: the node of each rank."},
        Spoilt{"PlanKey", "chapter.yaml",
               "{worlds: [[0], [0, 0], [0, 0, 1]], settings: {epochs: 3, batch_size: 3}}",
               "{world: [[0]]}", "unknown key world. Did you mean 'worlds'?"},
        Spoilt{"Mesh", "chapter.yaml",
               "[[0], [0, 0], [0, 0, 1]], settings: {epochs: 3, batch_size: 3}",
               "[{nodes: [0, 0, 0, 0], mesh: {tp: 2, dp: 3}}]",
               "a mesh of 6 ranks does not fit a world of 4"},
        Spoilt{"NoRules", "chapter.yaml", "  place: [membership, purposes]", "  place: membership",
               "rules must be a mapping: for each stage a list of rules"},
        Spoilt{"Kind", "chapter.yaml", "name: 03_sampler", "name: 03_sampler\n    kind: plan",
               "a program is a trainer, or plain"},
        Spoilt{"NothingExpected", "chapter.yaml", "name: 03_sampler",
               "name: 03_sampler\n    kind: plain\n    expected: {1: [x], 2: [x, y], 3: [x, y]}",
               "what 3 ranks print is missing, a text for each"},
        Spoilt{"NoTask", "chapter.yaml", "task: language_model\n", "",
               "a trainer is judged with a task; the chapter names none"},
        Spoilt{"UnknownKey", "todos/04.yaml",
               "hint:", "hnit:", "unknown key hnit. Did you mean 'hint'?"},
        Spoilt{"UnknownStepKey", "chapter.yaml", "    title:", "    titel:", "unknown key titel"},
        Spoilt{"MissingKey", "todos/04.yaml", "title:", "#", "04.yaml:2: the key title is missing"},
        Spoilt{"EmptyText", "todos/05.yaml", "title: Deal out the training data",
               "title:", "title must be a text"},
        Spoilt{"TwoLines", "todos/05.yaml", "title: Deal out", "title: |\n  Deal\n  out",
               "title must be one line"},
        Spoilt{"Needs", "todos/05.yaml", "needs: [4]", "needs: [99]", "needs names TODO 99"},
        Spoilt{"Models", "todos/12.yaml",
               "models: {best:", "models: {bets:", "unknown key bets. Did you mean 'best'?"},
        Spoilt{"StepNumber", "chapter.yaml", "name: 01_serial", "name: 02_serial",
               "the steps 02_serial and 02_setup have the same number"},
        Spoilt{"StepName", "chapter.yaml", "name: 03_sampler", "name: 3_sampler",
               "must begin with two digits"},
        Spoilt{"Parent", "chapter.yaml", "name: 03_sampler", "name: 03_sampler\n    parent: 05_all",
               "the parent of 03_sampler is 05_all, which is not a step before it"},
        Spoilt{"FileOfStep", "chapter.yaml", "name: 03_sampler",
               "name: 03_sampler\n    files: [train.cp]",
               "no file train.cp. Did you mean 'train.cpp'?"},
        Spoilt{"NoProgram", "chapter.yaml", "name: 03_sampler",
               "name: 03_sampler\n    files: [job.sbatch]", "exactly one file that is a program"},
        Spoilt{"FileKind", "chapter.yaml", "train.cpp: program", "train.cpp: programme",
               "a file is a program, a part of one, or a job"},
        Spoilt{"Chapters", "../order.yaml",
               "[data_parallel, inside_ddp, workloads, fsdp, sharded_checkpoint, collectives]",
               "[data_parallel, nothing]", "order.yaml:2: there is no folder nothing beside it"},
        Spoilt{"BlameOfNoFinding", "chapter.yaml", "  same_order_again:", "  same_order_agian:",
               "there is no finding same_order_agian. Did you mean 'same_order_again'?"},
        Spoilt{"BlameOfNoFeature", "chapter.yaml", "same_order_again: [SET_EPOCH]",
               "same_order_again: [SET_EPOHC]", "feature SET_EPOHC on. Did you mean 'SET_EPOCH'?"},
        Spoilt{"BlameOfNobody", "chapter.yaml", "same_order_again: [SET_EPOCH]",
               "same_order_again: []", "a list of features is expected here"},
        Spoilt{"UnknownWordsKey", "findings.yaml", "    why: >", "    whi: >",
               "unknown key whi. Did you mean 'why'?"},
        Spoilt{"NoWords", "findings.yaml", "what: The {meant} pass",
               "what: ''\n    # The {meant} pass", "a text is expected here"},
        Spoilt{"OpenBrace", "findings.yaml", "reads the {used} split", "reads the {used split",
               "a { without a }"},
        Spoilt{"NoOtherwise", "findings.yaml", "      otherwise: The {split} sampler",
               "      else: The {split} sampler", "the variant otherwise is missing"},
        Spoilt{"SameChapter", "../order.yaml",
               "[data_parallel, inside_ddp, workloads, fsdp, sharded_checkpoint, collectives]",
               "[data_parallel, data_parallel]", "have the same number"},
        Spoilt{"TodoOrder", "chapter.yaml", "[1, 2, 3]", "[1, 3, 2]",
               "TODO 3 stands where TODO 2 is due"},
        Spoilt{"NoList", "chapter.yaml", "[1, 2, 3]", "none", "todos must be a list"},
        Spoilt{"WrongStep", "todos/08.yaml", "step: 04_ddp", "step: 05_all_reduce_loss",
               "its step is 05_all_reduce_loss, but chapter.yaml lists it in 04_ddp"},
        Spoilt{"UnlistedTodo", "chapter.yaml", "[14, 15, 16, 17]", "[14, 15, 16]",
               "17.yaml: no step in chapter.yaml lists this TODO"},
        Spoilt{"MissingTodo", "chapter.yaml", "[14, 15, 16, 17]", "[14, 15, 16, 17, 18]",
               "18.yaml"},
        Spoilt{"UnknownFeature", "train.cpp", "#if SAMPLER", "#if SAMPLERS",
               "no TODO or step switches the feature SAMPLERS on. Did you mean 'SAMPLER'?"},
        Spoilt{"UnusedFeature", "todos/09.yaml", "[SET_EPOCH]", "[SET_EPOCH, EXTRA]",
               "09.yaml: no source has an #if EXTRA"},
        Spoilt{"UnknownPlace", "train.cpp", "//@todo 9", "//@todo 99", "there is no TODO 99"},
        Spoilt{"NoPlace", "train.cpp", "//@todo 9", "",
               "09.yaml: this TODO needs its place in one of the chapter's files; it has none"},
        Spoilt{"TwoFiles", "job.sbatch", "#@todo 15", "#@todo 9",
               "it has places in train.cpp and job.sbatch"},
        Spoilt{"MarkOfTwoStatements", "train.cpp", "//@set_epoch", "//@epochs",
               ": the mark epochs is also on line"},
        Spoilt{"NoHereToo", "todos/10.yaml", "here_too:", "#",
               "here_too is for TODOs with several places"},
        Spoilt{"NeedlessHereToo", "todos/09.yaml",
               "title:", "here_too: x\ntitle:", "here_too is for TODOs with several places"}),
    [](const auto& parameter) { return parameter.param.name; });

// Where models lie is what the last TODO says that speaks of them.
TEST(Course, KnowsWhereASolutionLeavesItsModels) {
  const auto& course = testing::course();
  EXPECT_TRUE(course.models_of(course.step("05")).empty());
  const std::map<std::string, std::string> files{{"best", "model-best.safetensors"},
                                                 {"final", "model-final.safetensors"}};
  for (const auto* step : {"06", "07", "08", "09", "12"})
    EXPECT_EQ(course.models_of(course.step(step)), files) << step;
  EXPECT_EQ(course.models_of(course.step("13")).at("best"), "model-best/");
  EXPECT_EQ(course.models_of(course.step("13")).at("final"), "model-final.safetensors");
}

TEST(Course, KnowsTheTodoThatSwitchesAFeatureOn) {
  const auto course = load_course(testing::chapters_folder());
  EXPECT_EQ(course.todo_of("DDP"), 8);
  EXPECT_EQ(course.todo_of("SETUP"), 3);  // the last of those that do
  EXPECT_THAT(error_of([&] { course.todo_of("SETPU"); }),
              HasSubstr("no TODO that switches the feature SETPU on. Did you mean 'SETUP'?"));
  // What comes ready-made with a step is no TODO's.
  EXPECT_THAT(error_of([&] { course.todo_of("CHECKPOINT"); }), HasSubstr("no TODO that switches"));
}

TEST(Course, AMissingFileIsNamed) {
  const CourseCopy course;
  std::filesystem::remove(course.chapter() / "train.cpp");
  EXPECT_THAT(error_of([&] { load_course(course.path()); }),
              ::testing::AllOf(HasSubstr("train.cpp"), HasSubstr("No such file")));
}

}  // namespace
}  // namespace checker
