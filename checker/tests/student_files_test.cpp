// The verbs that show and bring back files: hint, diff, reset, challenge.
#include <gmock/gmock.h>

#include "student.hpp"
#include "support/error.hpp"
#include "support/text.hpp"
#include "verbs/check.hpp"
#include "verbs/verbs.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class StudentFiles : public testing::StudentTest {};

TEST_F(StudentFiles, HintAndWhatIsBehindIt) {
  const auto forget = [&] { fs::remove(student_.path("steps/.progress")); };
  const auto hint = say(run_hint, {"1"});
  EXPECT_EQ(hint,
            "TODO 1  Include distributed_utils\nsteps/02_setup/train.cpp\n\n"
            "  The header is distributed_utils/distributed_utils.hpp. It belongs to this project, "
            "like\n  tasks/task.hpp. The namespace has the library's name.\n\n"
            "The shape of the code: ./workbook hint 1, once more\n"
            "Explanation: ./workbook hint 1 --more\nIts slide: ./workbook slides 1\n");
  for (const Arguments& words : {Arguments{"TODO", "1"}, {"todo01"}, {}}) {
    forget();
    EXPECT_EQ(say(run_hint, words), hint) << join(words, " ");
  }
  EXPECT_THAT(say(run_hint, {"1", "--more"}), HasSubstr("\n\n  The header declares everything"));
  EXPECT_THROW(say(run_hint, {"99"}), UsageError);
}

TEST_F(StudentFiles, HintAndDiffTakeStepsAsWellAsTodos) {
  const auto of = [&](const Arguments& words) {
    const auto text = say(run_hint, words);
    return text.substr(0, text.find("  "));
  };
  EXPECT_EQ(of({"03_sampler"}), "TODO 4");
  EXPECT_EQ(of({"03"}), "TODO 4");
  EXPECT_EQ(of({"step", "3"}), "TODO 4");
  EXPECT_EQ(of({"3"}), "TODO 3") << "a number alone is a TODO";
  EXPECT_EQ(of({"c4"}), "TODO C4");
  student_.edit("03");
  testing::printed([&] {
    check_with(student_.project, {"03"},
               [](const Course& course, const Step& step, const CheckOptions&) {
                 return testing::report(course, step.name, {testing::wrong(6, "x")});
               });
  });
  EXPECT_EQ(of({"03"}), "TODO 6") << "the first of the step that is to be worked on";
  EXPECT_THAT(testing::error_of([&] { say(run_hint, {"01"}); }),
              HasSubstr("Step 01_serial has no TODOs."));
  EXPECT_THAT(say(run_diff, {"step", "4"}), HasSubstr("--- steps/04_ddp/train.cpp"));
  EXPECT_THAT(say(run_diff, {"c4"}), HasSubstr("--- steps/C4_all_reduce/"));
  EXPECT_THROW(say(run_diff, {"99"}), UsageError);
}

TEST_F(StudentFiles, DiffOfATodoShowsItsLinesAlone) {
  student_.edit("04");
  EXPECT_EQ(say(run_diff, {"8"}),
            "This shows the answer to TODO 8: remove lines with -, add lines with +.\n\n"
            "steps/04_ddp/train.cpp, Wrap the model in DistributedDataParallel\n"
            "@@ at TODO 8 @@\n"
            " \n"
            "   const auto module = task->make_model();\n"
            "   module->to(device);\n"
            "-  const auto model = module;\n"
            "+  const auto model = DistributedDataParallel(module);\n"
            "   const auto optimizer = task->make_optimizer(model->parameters());\n"
            " \n"
            "   tasks::Progress progress(options, *train_set.size());\n");
  const auto third = say(run_diff, {"TODO", "3"});
  EXPECT_THAT(third, HasSubstr("+      setup({.backend"));
  EXPECT_THAT(third, Not(HasSubstr("+#include")));
  const auto job = say(run_diff, {"14"});
  EXPECT_THAT(job, HasSubstr("+#SBATCH --gres=gpu:4"));
  EXPECT_THAT(job, HasSubstr("+export CUDA_VISIBLE_DEVICES=0,1,2,3"));
  EXPECT_THAT(job, Not(HasSubstr("+MASTER_ADDR")));
}

TEST_F(StudentFiles, EveryTodoHasAnAnswerOfItsOwn) {
  for (const auto& [number, todo] : student_.course.todos) {
    if (is_exercise(number)) continue;
    EXPECT_THAT(say(run_diff, {"TODO", label_of_todo(number)}), ::testing::ContainsRegex("\n[-+]"))
        << number;
  }
}

TEST_F(StudentFiles, DiffShowsTheSolutionAndSaysSo) {
  const auto diff = say(run_diff, {"04"});
  EXPECT_THAT(diff, ::testing::StartsWith("This shows the solution: "));
  EXPECT_THAT(diff, HasSubstr("\n--- steps/04_ddp/train.cpp\n+++ solutions/04_ddp/train.cpp\n@@ "));
  EXPECT_THAT(diff, HasSubstr("\n-  const auto model = module;\n"
                              "+  const auto model = DistributedDataParallel(module);\n"));
  student_.write(student_.trainer("04"), "// Mine\n" + student_.text("solutions/04_ddp/train.cpp"));
  EXPECT_EQ(say(run_diff, {"04"}),
            "steps/04_ddp/train.cpp: the same as the solution, apart from comments.\n");
  EXPECT_THAT(say(run_diff, {"07"}), HasSubstr("+++ solutions/07_multi_node/07_multi_node.sbatch"));
}

TEST_F(StudentFiles, ResetKeepsTheStudentsFileBeside) {
  const auto given = student_.text(student_.trainer("04"));
  EXPECT_EQ(say(run_reset, {"04"}), "steps/04_ddp/train.cpp: unchanged; nothing to do.\n");
  student_.write(student_.trainer("04"), "mine\n");
  EXPECT_EQ(say(run_reset, {"04"}),
            "steps/04_ddp/train.cpp: restored; your version is saved as "
            "steps/04_ddp/train.cpp.before-reset.\n");
  EXPECT_EQ(student_.text(student_.trainer("04")), given);
  EXPECT_EQ(student_.text("steps/04_ddp/train.cpp.before-reset"), "mine\n");
  student_.write(student_.trainer("04"), "mine again\n");
  say(run_reset, {"04"});
  EXPECT_EQ(student_.text("steps/04_ddp/train.cpp.before-reset"), "mine\n");
  EXPECT_EQ(student_.text("steps/04_ddp/train.cpp.2.before-reset"), "mine again\n");
  fs::remove(student_.path(student_.trainer("04")));
  EXPECT_THAT(say(run_reset, {"04"}), HasSubstr("was missing, restored"));
  EXPECT_EQ(student_.text(student_.trainer("04")), given);
}

TEST_F(StudentFiles, ResetBringsTheStudentsFileBack) {
  const auto file = student_.trainer("04");
  const fs::path kept = "steps/04_ddp/train.cpp.before-reset";
  EXPECT_THAT(testing::error_of([&] {
                say(run_reset, {"04", "--back"});
              }),
              HasSubstr("there is nothing to bring back"));
  student_.write(file, "mine\n");
  say(run_reset, {"04"});
  EXPECT_THAT(say(run_reset, {"04", "--back"}),
              HasSubstr("your version from before the reset is back."));
  EXPECT_EQ(student_.text(file), "mine\n");
  EXPECT_FALSE(fs::exists(student_.path(kept)));
  say(run_reset, {"04"});
  student_.write(file, "a second try\n");
  EXPECT_THAT(say(run_reset, {"04", "--back"}), HasSubstr("saved as " + kept.string()));
  EXPECT_EQ(student_.text(file), "mine\n");
  EXPECT_EQ(student_.text(kept), "a second try\n") << "no edit is lost";
  say(run_reset, {"04", "--back"});
  EXPECT_EQ(student_.text(file), "a second try\n");
}

TEST_F(StudentFiles, TheChallengeIsTheSerialTrainerWithoutTodos) {
  EXPECT_THAT(say(run_challenge, {}), HasSubstr("challenge/train.cpp is the serial trainer."));
  const auto given = student_.text("challenge/train.cpp");
  EXPECT_THAT(given, ::testing::StartsWith("// The challenge: "));
  EXPECT_THAT(given, Not(HasSubstr("TODO ")));
  EXPECT_THAT(given, HasSubstr("\nint main(int argc, char** argv) try {\n"));
  EXPECT_THAT(given, HasSubstr("torch::save(model, "));
  EXPECT_THAT(given, Not(HasSubstr("DistributedSampler")));
  EXPECT_THAT(say(run_challenge, {}), HasSubstr("is unchanged. Edit it"));
  EXPECT_EQ(status_, 1);
  student_.write("challenge/train.cpp", "mine\n");
  EXPECT_THAT(say(run_challenge, {"--again"}), HasSubstr("challenge/train.cpp.before-reset"));
  EXPECT_EQ(student_.text("challenge/train.cpp"), given);
  EXPECT_EQ(student_.text("challenge/train.cpp.before-reset"), "mine\n");
}

TEST_F(StudentFiles, AStepOfTwoFilesIsShownAndResetWhole) {
  EXPECT_THAT(say(run_hint, {"19"}), HasSubstr("\nsteps/08_inside_ddp/ddp.hpp\n"));
  const auto diff = say(run_diff, {"08"});
  EXPECT_THAT(diff, HasSubstr("train.cpp: the same as the solution, apart from comments.\n"));
  EXPECT_THAT(diff, HasSubstr("\n+++ solutions/08_inside_ddp/ddp.hpp\n"));
  const auto given = student_.text("steps/08_inside_ddp/ddp.hpp");
  student_.write("steps/08_inside_ddp/ddp.hpp", "mine\n");
  const auto text = say(run_reset, {"08"});
  EXPECT_THAT(text, HasSubstr("steps/08_inside_ddp/train.cpp: unchanged; nothing to do.\n"));
  EXPECT_THAT(text, HasSubstr("saved as steps/08_inside_ddp/ddp.hpp.before-reset"));
  EXPECT_EQ(student_.text("steps/08_inside_ddp/ddp.hpp"), given);
}

TEST_F(StudentFiles, ResetOfAStepWithAJobResetsBoth) {
  student_.write("sbatch/07_multi_node.sbatch", "mine\n");
  const auto text = say(run_reset, {"07"});
  EXPECT_THAT(text, HasSubstr("steps/07_multi_node/train.cpp: unchanged; nothing to do.\n"));
  EXPECT_THAT(text, HasSubstr("saved as sbatch/07_multi_node.sbatch.before-reset"));
  EXPECT_THROW(say(run_reset, {}), UsageError);
}

}  // namespace
}  // namespace checker
