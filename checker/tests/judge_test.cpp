// The parts of the judge that need no run; rules are tested with the catalogue.
#include <gmock/gmock.h>

#include <unistd.h>

#include <ctime>

#include "course/render.hpp"
#include "evidence/collective_kinds.hpp"
#include "files.hpp"
#include "judge/collectives.hpp"
#include "judge/compile.hpp"
#include "judge/compiler_warnings.hpp"
#include "judge/job_rules.hpp"
#include "judge/rules/table.hpp"
#include "judge/rules/wording.hpp"
#include "log_writer.hpp"
#include "support/error.hpp"
#include "support/files.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

using testing::course;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(CompileErrors, ShowTheFirstAtTheStudentsLine) {
  const std::vector<std::string> clang = {
      "/p/steps/02/train.cpp:31:5: warning: unused variable 'x' [-Wunused]",
      "    int x;",
      "        ^",
      "/p/steps/02/train.cpp:40:3: error: use of undeclared identifier 'setpu'",
      "  setpu();",
      "  ^",
      "/p/steps/02/train.cpp:44:3: error: expected ';'"};
  const auto error = first_error(clang, "/p/steps/02/train.cpp", "steps/02/train.cpp");
  ASSERT_TRUE(error);
  EXPECT_EQ(error->where, "steps/02/train.cpp:40:3");
  EXPECT_EQ(error->message, "use of undeclared identifier 'setpu'");
  EXPECT_EQ(error->source, "  setpu();\n  ^\n");
}

TEST(CompileErrors, InAHeaderNameTheLineThatLedThere) {
  const std::vector<std::string> clang = {
      "/usr/include/fmt/core.h:12:3: error: static assertion failed",
      "/p/train.cpp:9:1: note: in instantiation of function template requested here",
      "  print0(x);", "  ^"};
  EXPECT_EQ(first_error(clang, "/p/train.cpp", "train.cpp")->where, "train.cpp:9:1");
  const std::vector<std::string> gcc = {"/p/train.cpp:9:7:   required from here",
                                        "/usr/include/fmt/core.h:12:3: error: no match"};
  EXPECT_EQ(first_error(gcc, "/p/train.cpp", "train.cpp")->where, "train.cpp:9:7");
  EXPECT_FALSE(first_error({"ninja: no work to do."}, "/p/train.cpp", "train.cpp"));
}

// A program may have several files in one folder. What lies elsewhere is not the student's.
TEST(CompileErrors, InAnotherFileOfTheProgramNameThatOne) {
  const std::vector<std::string> clang = {
      "In file included from /p/steps/08/train.cpp:20:",
      "/p/steps/08/ddp.hpp:31:5: error: use of undeclared identifier 'brodcast'", "    brodcast();",
      "    ^"};
  EXPECT_EQ(first_error(clang, "/p/steps/08/train.cpp", "steps/08/train.cpp")->where,
            "steps/08/ddp.hpp:31:5");
  EXPECT_EQ(first_error(clang, "/p/steps/07/train.cpp", "steps/07/train.cpp")->where,
            "steps/07/train.cpp");
  const std::vector<std::string> gcc = {"/p/steps/08/ddp.hpp:9:7:   required from here",
                                        "/usr/include/fmt/core.h:12:3: error: no match"};
  EXPECT_EQ(first_error(gcc, "/p/steps/08/train.cpp", "train.cpp")->where, "ddp.hpp:9:7");
}

TEST(CompilerWarnings, AreThoseAboutTheStudentsFiles) {
  const std::vector<std::string> clang = {
      "/usr/include/fmt/core.h:12:3: warning: unused variable 'y' [-Wunused-variable]",
      "/p/steps/08/ddp.hpp:60:24: warning: unused parameter 'bucket' [-Wunused-parameter]",
      "/p/steps/08/ddp.hpp:31:5: warning: ignoring return value [-Wunused-result]",
      "/p/steps/08/train.cpp:40:3: warning: unused variable 'x' [-Wunused-variable]",
      "  float x;",
      "/p/steps/08/ddp.hpp:31:5: warning: ignoring return value [-Wunused-result]"};
  const auto warnings = warnings_in(clang, "/p/steps/08/train.cpp", "steps/08/train.cpp");
  EXPECT_EQ(warnings, (std::vector<CompilerWarning>{
                          {"steps/08/ddp.hpp:31:5", "ignoring return value [-Wunused-result]"},
                          {"steps/08/train.cpp:40:3", "unused variable 'x' [-Wunused-variable]"}}));
  const TemporaryFolder folder;
  const KeptWarnings kept(folder.path() / "warnings" / "step_08");
  EXPECT_TRUE(kept.read().empty());
  kept.keep(warnings);
  EXPECT_EQ(kept.read(), warnings);
  kept.keep({});
  EXPECT_TRUE(kept.read().empty());
}

TEST(CompileErrors, AreReadInTheFileThatTheyAreIn) {
  const auto& step = course().step("08");
  EXPECT_EQ(file_at(course(), step, "steps/08_inside_ddp/ddp.hpp:31:5").name, "ddp.hpp");
  EXPECT_EQ(file_at(course(), step, "steps/08_inside_ddp/train.cpp").name, "train.cpp");
  EXPECT_EQ(file_at(course(), step, "elsewhere.hpp:1:1").name, "train.cpp");
  const auto& file = file_at(course(), step, "ddp.hpp");
  const auto text = render(course(), file, step, Rendering::step);
  const auto before = text.substr(0, text.find("average(bucket);"));
  CompileError error{"ddp.hpp:" + std::to_string(std::ranges::count(before, '\n') + 1) + ":7",
                     "no zorble", ""};
  explain(error, course(), step, text);
  EXPECT_EQ(error.todo, 20);
}

TEST(Collectives, AreDescribedAsTheCourseSaysThem) {
  CollectiveSeen seen;
  seen.call.op_type = 1;
  seen.call.reduce_op = 1;
  seen.call.scalar_type = 7;
  seen.call.root = -1;
  seen.call.elements = 2;
  EXPECT_EQ(describe(seen), "all_reduce of 2 float64 (AVG)");
  CollectiveSeen other = seen;
  EXPECT_EQ(difference(seen, other), "");
  other.call.reduce_op = 0;
  EXPECT_EQ(difference(seen, other), "reduce op");
  other.call.scalar_type = 6;
  EXPECT_EQ(difference(seen, other), "type");
  other.call.elements = 3;
  EXPECT_EQ(difference(seen, other), "size");
  other.call.op_type = 0;
  other.call.root = 1;
  other.call.reduce_op = 255;
  EXPECT_EQ(describe(other), "broadcast of 3 float32 from rank 1");
  EXPECT_EQ(difference(seen, other), "kind");
}

CollectiveSeen moving(CollectiveKind kind, int8_t type, uint64_t elements, size_t event) {
  CollectiveSeen seen;
  seen.call.op_type = static_cast<uint8_t>(kind);
  seen.call.reduce_op = kind == CollectiveKind::all_reduce ? 0 : 255;
  seen.call.scalar_type = type;
  seen.call.root = kind == CollectiveKind::broadcast ? 0 : -1;
  seen.call.elements = elements;
  seen.event = event;
  return seen;
}

TEST(Collectives, OfTheModelAreCalledSo) {
  using instrumentation::Phase;
  RankSeen rank;
  rank.model = {{.name = "a", .elements = 900},
                {.name = "b", .elements = 70},
                {.name = "c", .elements = 3},
                {.name = "mean", .buffer = true, .elements = 5}};
  rank.phases = {{{.phase = Phase::data, .split = 0, .step = 1}, 10},
                 {{.phase = Phase::backward, .split = 0, .step = 1}, 20},
                 {{.phase = Phase::optimizer, .split = 0, .step = 1}, 30}};
  const auto all = CollectiveKind::all_reduce, from = CollectiveKind::broadcast;
  const auto said = [&](const CollectiveSeen& seen) { return describe(rank, seen); };
  EXPECT_EQ(said(moving(all, 7, 973, 25)),
            "the model's gradients (all_reduce of 973 float64 (SUM))");
  EXPECT_EQ(said(moving(all, 7, 73, 25)), "the model's gradients (all_reduce of 73 float64 (SUM))");
  EXPECT_EQ(said(moving(from, 7, 978, 5)),
            "the model's parameters (broadcast of 978 float64 from rank 0)");
  // Another place, type or size, or one that a loss may have as well.
  for (const auto& other :
       {moving(all, 7, 973, 35), moving(all, 6, 973, 25), moving(all, 7, 903, 25),
        moving(all, 7, 978, 25), moving(from, 7, 978, 15)}) {
    EXPECT_EQ(said(other), describe(other));
  }
  rank.model.push_back({.name = "d", .elements = 2});
  EXPECT_EQ(said(moving(all, 7, 2, 25)), "all_reduce of 2 float64 (SUM)");
}

// A feature's name misspelt in a rule would be blamed on no TODO at all.
TEST(Features, OfTheRulesAreThoseOfTodos) {
  for (const auto name : {feature::setup, feature::samplers, feature::ddp, feature::set_epoch,
                          feature::all_reduce, feature::print0, feature::save0, feature::destroy}) {
    EXPECT_TRUE(course().todos.contains(course().todo_of(name))) << name;
  }
}

TEST(Features, UnknownOnesAreExpectedOfNobody) {
  const RecordedRun recorded{};
  const ExpectedWorld truth{};
  const Plan plan;
  const RunContext context{recorded, truth, plan, course(), course().step("04"), {"DDP"}, {}};
  EXPECT_TRUE(context.expects(feature::ddp));
  EXPECT_FALSE(context.expects(feature::print0));
  EXPECT_THAT([&] { context.expects("PRINTO"); },
              ThrowsMessage<Error>(HasSubstr("feature PRINTO on. Did you mean 'PRINT0'?")));
}

TEST(Rules, OfEveryChapterAreKnown) {
  for (const auto& chapter :
       load_course(testing::chapters_folder(), Chapters::with_tests).chapters) {
    EXPECT_NO_THROW(rules::ChapterRules{chapter}) << chapter.name;
  }
  auto chapter = course().chapters.front();
  chapter.rules["numbers"].push_back("gradient");
  EXPECT_THAT(
      [&] { rules::ChapterRules{chapter}; },
      ThrowsMessage<Error>(::testing::AllOf(
          HasSubstr("chapter.yaml:"), HasSubstr("no rule gradient. Did you mean 'gradients'?"))));
  chapter.rules = {{"nmubers", {}}};
  EXPECT_THAT([&] { rules::ChapterRules{chapter}; },
              ThrowsMessage<Error>(HasSubstr("no stage nmubers. Did you mean 'numbers'?")));
}

ExpectedWorld three_epochs() {
  ExpectedWorld truth;
  truth.training = {2.9, 2.5, 2.2};
  truth.validation = {2.6, 2.4, 2.1};
  truth.test = 2.05;
  return truth;
}

std::string wrong(const std::string& line, const ExpectedWorld& truth) {
  const auto problem = rules::wrong_wording(line, truth);
  return problem ? problem->name : "";
}

TEST(Wording, IsFreeAsLongAsNumbersBelongWhereTheyStand) {
  for (const std::string line :
       {"epoch 1/3: training loss 2.90000, validation loss 2.60000", "[2] 2.5 -> 2.4",
        "test loss: 2.050", "validation 2.6 (epoch 1)", "done"}) {
    EXPECT_EQ(wrong(line, three_epochs()), "") << line;
  }
  EXPECT_EQ(wrong("epoch 2/3: training loss 2.9", three_epochs()), "other_epoch");
  EXPECT_EQ(wrong("2.9 2.5 2.2", three_epochs()), "several_epochs");
  EXPECT_EQ(wrong("validation loss 2.500", three_epochs()), "other_loss");
  EXPECT_EQ(wrong("best validation loss: 2.500 (12.2)test loss: 2.05", three_epochs()),
            "two_lines");
}

TEST(Wording, LossesThatAreAlikeByChanceBelongToNoEpoch) {
  auto truth = three_epochs();
  truth.validation[0] = 2.5002;  // as the second epoch's training loss
  EXPECT_EQ(wrong("epoch 1/3: training loss 2.9000, validation loss 2.5002", truth), "");
  EXPECT_EQ(wrong("epoch 1/3: training loss 2.2000", truth), "other_epoch");
  truth = three_epochs();
  truth.training[1] = 3.0003;  // as the number of epochs
  EXPECT_EQ(wrong("epoch 1/3: training loss 2.9000, validation loss 2.6", truth), "");
}

}  // namespace
}  // namespace checker
