// The verbs of a student: check, list, progress.
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

class StudentVerbs : public testing::StudentTest {
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

  std::vector<Verdict> verdicts_;
  bool compile_error_ = false;
  std::function<void()> while_judging_;
  std::vector<std::string> asked_;
  CheckOptions options_;
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

}  // namespace
}  // namespace checker
