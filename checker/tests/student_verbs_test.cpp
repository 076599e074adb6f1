// The verbs of a student: check, list, progress, hint, diff, reset.
#include "verbs/check.hpp"

#include <gmock/gmock.h>

#include "student.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class StudentVerbs : public ::testing::Test {
 protected:
  // Runs check; the judge says what `verdicts_` holds, all else is done.
  std::string check(const Arguments& arguments) {
    return testing::printed([&] {
      status_ = check_with(student_.project, arguments,
                           [&](const Course& course, const Step& step, const CheckOptions& given) {
                             asked_.push_back(step.label());
                             options_ = given;
                             given.on_stage("building");
                             auto report = testing::report(course, step.name, verdicts_);
                             if (compile_error_)
                               report.compile_error = CompileError{"f:1", "m", ""};
                             if (while_judging_) while_judging_();
                             return report;
                           });
    });
  }

  template <typename Verb>
  std::string say(Verb verb, const Arguments& arguments) {
    return testing::printed([&] { status_ = verb(student_.project, arguments); });
  }

  testing::Student student_;
  std::vector<Verdict> verdicts_;
  bool compile_error_ = false;
  std::function<void()> while_judging_;
  std::vector<std::string> asked_;
  CheckOptions options_;
  int status_ = -1;
};

TEST_F(StudentVerbs, CheckJudgesOneStepAndSaysWhatIsNext) {
  student_.edit("04");
  verdicts_ = {testing::wrong(9, "The order is the same in every epoch.")};
  const auto text = check({"04"});
  EXPECT_EQ(status_, 1);
  EXPECT_THAT(asked_, ElementsAre("04"));
  EXPECT_THAT(text, ::testing::StartsWith("  the check of step 04: done ("));
  EXPECT_THAT(text, HasSubstr("\n\n04_ddp  The ranks train one model\n\n"
                              "  ✓ TODO 8   Wrap the model in DistributedDataParallel\n"
                              "  ✗ TODO 9   Tell the sampler which epoch it is\n"
                              "      The order is the same in every epoch.\n\n"
                              "Next is TODO 9, Tell the sampler which epoch it is:\n"));
}

TEST_F(StudentVerbs, CheckKnowsStepsAndTodosApart) {
  for (const Arguments& words : {Arguments{"05"},
                                 {"5"},
                                 {"05_all_reduce_loss"},
                                 {"TODO", "10"},
                                 {"todo", "10"},
                                 {"todo10"}}) {
    asked_.clear();
    check(words);
    EXPECT_THAT(asked_, ElementsAre("05")) << join(words, " ");
    EXPECT_EQ(status_, 0);
  }
  check({"TODO", "5"});
  EXPECT_EQ(asked_.back(), "03");
  check({"TODO", "05"});
  EXPECT_EQ(asked_.back(), "03");
}

TEST_F(StudentVerbs, CheckTakesSeveralSteps) {
  check({"c1", "02", "C2", "c1"});
  EXPECT_THAT(asked_, ElementsAre("C1", "02", "C2"));
}

TEST_F(StudentVerbs, CheckRefusesWhatItDoesNotKnow) {
  const auto error = [&](const Arguments& words) {
    return testing::error_of([&] { check(words); });
  };
  EXPECT_EQ(error({"TODO", "99"}),
            "There is no TODO 99. They are TODO 1 to 25, 39 to 44 and C1 to C11.");
  EXPECT_THAT(error({"TODO"}), HasSubstr("There is no TODO without a number"));
  EXPECT_THAT(error({"99"}), HasSubstr("Unknown step: 99."));
  EXPECT_THAT(error({"10"}), HasSubstr("Step 10 is still to come. The steps are 01_serial"));
  EXPECT_THAT(error({"02", "tow"}), HasSubstr("Unknown step: tow."));
  EXPECT_THAT(error({"02", "--device", "tpu"}), HasSubstr("cpu or cuda"));
  EXPECT_THAT(error({"02", "--world", "0"}), HasSubstr("between 1 and 64"));
  EXPECT_THROW(check({"99"}), UsageError);
  EXPECT_TRUE(asked_.empty());
  EXPECT_THAT(check({"01"}), HasSubstr("has no TODOs"));
  EXPECT_EQ(status_, 0);
}

TEST_F(StudentVerbs, CheckPassesItsOptionsOn) {
  check({"06", "--solution", "--device", "cuda", "--world", "2", "--world", "3", "--no-build",
         "--keep", "/somewhere"});
  EXPECT_TRUE(options_.solution);
  EXPECT_FALSE(options_.build);
  EXPECT_EQ(options_.device, "cuda");
  EXPECT_THAT(options_.worlds, ElementsAre(2, 3));
  EXPECT_EQ(options_.keep, "/somewhere");
}

TEST_F(StudentVerbs, CheckWithoutAStepGoesOnWhereThingsAreNotDone) {
  check({});
  EXPECT_EQ(asked_.back(), "02");
  student_.edit("02");
  check({"02"});
  check({});
  EXPECT_EQ(asked_.back(), "03");
  student_.edit("02");
  check({});
  EXPECT_EQ(asked_.back(), "02") << "it has changed since";
}

TEST_F(StudentVerbs, CheckAllJudgesEveryStepThatHasTodos) {
  for (const auto& step : student_.course.steps) {
    for (const auto* file : student_.course.student_files(step)) {
      student_.write(student_.course.path_of(step, *file, false), "edited\n");
    }
  }
  verdicts_ = {testing::wrong(11, "Every rank prints.")};
  const auto text = check({"all"});
  EXPECT_EQ(status_, 1);
  EXPECT_THAT(asked_, ElementsAre("02", "03", "04", "05", "06", "07", "08", "09", "12", "13"));
  EXPECT_THAT(text, HasSubstr("30 of 31 TODOs are done.\nNext is TODO 11, "));
  verdicts_.clear();
  EXPECT_THAT(check({"all"}),
              HasSubstr("31 of 31 TODOs are done.\nYou have done all TODOs of the course"));
  EXPECT_EQ(status_, 0);
  asked_.clear();
  EXPECT_THAT(check({}), HasSubstr("All TODOs are done."));
  EXPECT_TRUE(asked_.empty());
}

TEST_F(StudentVerbs, ExperimentsAreNamedWhenAChapterIsDone) {
  for (const auto* step : {"02", "03", "04", "05", "06"}) {
    student_.edit(step);
    EXPECT_THAT(check({step}), Not(HasSubstr("Experiments"))) << step;
  }
  student_.write("sbatch/07_multi_node.sbatch", "edited\n");
  EXPECT_THAT(check({"07"}), HasSubstr("The chapter data_parallel is done. Experiments to try "
                                       "now: steps/README.md\nNext is TODO 18, "));
}

TEST_F(StudentVerbs, AfterACompileErrorNothingElseIsSaid) {
  compile_error_ = true;
  const auto text = check({"04"});
  EXPECT_EQ(status_, 1);
  EXPECT_THAT(text, ::testing::EndsWith("✗ f:1 does not compile:\n\n  m\n\n"));
}

TEST_F(StudentVerbs, OnlyWholeVerdictsOnTheStudentsTextAreRemembered) {
  student_.edit("04");
  for (const Arguments& words :
       {Arguments{"04", "--solution"}, {"04", "--world", "2"}, {"04", "--no-build"}}) {
    check(words);
    EXPECT_FALSE(fs::exists(student_.path("steps/.progress"))) << join(words, " ");
  }
  const auto program = student_.project.build / "bin/step_04";
  write_file(program, "");
  fs::last_write_time(program, fs::file_time_type::clock::now() + std::chrono::hours(1));
  check({"04", "--no-build"});
  EXPECT_TRUE(fs::exists(student_.path("steps/.progress"))) << "the program is newer than the text";
}

TEST_F(StudentVerbs, AnEditWhileTheJudgeWorksIsNotTakenForJudged) {
  student_.edit("04");
  while_judging_ = [&] { student_.edit("04"); };
  check({"04"});
  EXPECT_THAT(say(run_list, {}), HasSubstr("changed since it was judged"));
}

TEST_F(StudentVerbs, ListShowsHowEveryTodoStands) {
  student_.edit("03");
  verdicts_ = {testing::wrong(5, "x"), testing::verdict(6, State::not_judged, "waits for TODO 5")};
  check({"03"});
  const auto list = say(run_list, {});
  EXPECT_THAT(list, HasSubstr("\n03_sampler          Each rank gets its share of the data\n"
                              "  ✓ TODO 4   Make a DistributedSampler for each split\n"
                              "  ✗ TODO 5   Deal out the training data\n"
                              "  · TODO 6   Deal out the validation data  (waits for TODO 5)\n"
                              "  ✓ TODO 7   Deal out the test data\n"
                              "04_ddp              The ranks train one model\n"
                              "  ○ TODO 8   Wrap the model"));
}

TEST_F(StudentVerbs, ProgressIsOneScreen) {
  student_.edit("02");
  student_.edit("03");
  student_.edit("05");
  check({"02"});
  verdicts_ = {testing::wrong(5, "x")};
  check({"03"});
  EXPECT_EQ(say(run_progress, {}), R"(6 of 31 TODOs done

  01_serial              to read and to run
  02_setup               ✓✓✓   3 of 3
  03_sampler             ✓✗✓✓  3 of 4  1 wrong
  04_ddp                 ○○    0 of 2
  05_all_reduce_loss     ·     0 of 1  1 not checked yet
  06_rank_zero           ○○○   0 of 3
  07_multi_node          ○○○○  0 of 4
  08_inside_ddp          ○○○○  0 of 4
  09_workloads           ○○○○  0 of 4
  12_fsdp                ○○○   0 of 3
  13_sharded_checkpoint  ○○○   0 of 3
  C collectives          ○○○○○○○○○○○  0 of 11

Next is TODO 5, Deal out the training data:
  edit   steps/03_sampler/train.cpp, where it says TODO 5
  hint   ./workbook hint 5
)");
}

TEST_F(StudentVerbs, ABrokenMemoryIsSaidOnceAndStopsNothing) {
  student_.write("steps/.progress", "{");
  EXPECT_THAT(say(run_progress, {}), ::testing::StartsWith("steps/.progress could not be"));
  EXPECT_THAT(say(run_list, {}), Not(HasSubstr("could not be")));
  EXPECT_EQ(student_.text("steps/.progress.broken"), "{");
}

TEST_F(StudentVerbs, HintAndWhatIsBehindIt) {
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

TEST_F(StudentVerbs, HintAndDiffTakeStepsAsWellAsTodos) {
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
  verdicts_ = {testing::wrong(6, "x")};
  check({"03"});
  EXPECT_EQ(of({"03"}), "TODO 6") << "the first of the step that is to be worked on";
  EXPECT_THAT(testing::error_of([&] { say(run_hint, {"01"}); }),
              HasSubstr("Step 01_serial has no TODOs."));
  EXPECT_THAT(say(run_diff, {"step", "4"}), HasSubstr("--- steps/04_ddp/train.cpp"));
  EXPECT_THAT(say(run_diff, {"c4"}), HasSubstr("--- steps/C4_all_reduce/"));
  EXPECT_THROW(say(run_diff, {"99"}), UsageError);
}

TEST_F(StudentVerbs, DiffOfATodoShowsItsLinesAlone) {
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

TEST_F(StudentVerbs, EveryTodoHasAnAnswerOfItsOwn) {
  for (const auto& [number, todo] : student_.course.todos) {
    if (is_exercise(number)) continue;
    EXPECT_THAT(say(run_diff, {"TODO", label_of_todo(number)}), ::testing::ContainsRegex("\n[-+]"))
        << number;
  }
}

TEST_F(StudentVerbs, DiffShowsTheSolutionAndSaysSo) {
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

TEST_F(StudentVerbs, ResetKeepsTheStudentsFileBeside) {
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

TEST_F(StudentVerbs, ResetBringsTheStudentsFileBack) {
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

TEST_F(StudentVerbs, TheChallengeIsTheSerialTrainerWithoutTodos) {
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

TEST_F(StudentVerbs, AStepOfTwoFilesIsShownAndResetWhole) {
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

TEST_F(StudentVerbs, ResetOfAStepWithAJobResetsBoth) {
  student_.write("sbatch/07_multi_node.sbatch", "mine\n");
  const auto text = say(run_reset, {"07"});
  EXPECT_THAT(text, HasSubstr("steps/07_multi_node/train.cpp: unchanged; nothing to do.\n"));
  EXPECT_THAT(text, HasSubstr("saved as sbatch/07_multi_node.sbatch.before-reset"));
  EXPECT_THROW(say(run_reset, {}), UsageError);
}

}  // namespace
}  // namespace checker
