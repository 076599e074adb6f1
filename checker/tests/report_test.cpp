// A report as people read it.
#include <gmock/gmock.h>

#include "files.hpp"
#include "pty.hpp"
#include "report/json.hpp"
#include "report/terminal.hpp"
#include "student.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

using testing::course;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// TODO 4 is done, 5 wrong in every detail, 6 waits, 7 is wrong as well.
Report sampler_report() {
  auto fifth = testing::wrong(5, "With two ranks, each rank trained on all 120 samples.");
  fifth.findings[0].why =
      "A rank is to see its own share only. Two ranks that do the same work train no faster than "
      "one.\n\nLook at what the training loader gets.";
  fifth.findings[0].evidence = {
      "rank 0: samples 0 to 119", "rank 1: samples 0 to 119",
      "expected: 60 samples a rank, and no sample on both of them in one epoch"};
  fifth.findings[0].where = "steps/03_sampler/train.cpp:81";
  auto seventh = testing::wrong(7, "Every rank tested on all samples.");
  seventh.findings[0].where = "steps/03_sampler/train.cpp:99";
  return testing::report(
      course(), "03", {fifth, testing::verdict(6, State::not_judged, "waits for TODO 5"), seventh});
}

std::string text_of(const std::vector<std::string>& lines) { return join(lines, "\n") + "\n"; }

TEST(ReportLines, AHundredColumns) {
  EXPECT_EQ(text_of(report_lines(sampler_report(), course(), {.width = 100})),
            R"(03_sampler  Each rank gets its share of the data

  ✓ TODO 4   Make a DistributedSampler for each split
  ✗ TODO 5   Deal out the training data
      With two ranks, each rank trained on all 120 samples.

      A rank is to see its own share only. Two ranks that do the same work train no faster than one.

      Look at what the training loader gets.

      rank 0: samples 0 to 119
      rank 1: samples 0 to 119
      expected: 60 samples a rank, and no sample on both of them in one epoch

      steps/03_sampler/train.cpp:81

  · TODO 6   Deal out the validation data  (waits for TODO 5)
  ✗ TODO 7   Deal out the test data
      Every rank tested on all samples. (steps/03_sampler/train.cpp:99)
)");
}

TEST(ReportLines, SixtyColumnsOfAscii) {
  EXPECT_EQ(text_of(report_lines(sampler_report(), course(), {.width = 60, .unicode = false})),
            R"(03_sampler  Each rank gets its share of the data

  + TODO 4   Make a DistributedSampler for each split
  x TODO 5   Deal out the training data
      With two ranks, each rank trained on all 120 samples.

      A rank is to see its own share only. Two ranks that do
      the same work train no faster than one.

      Look at what the training loader gets.

      rank 0: samples 0 to 119
      rank 1: samples 0 to 119
      expected: 60 samples a rank, and no sample on both
        of them in one epoch

      steps/03_sampler/train.cpp:81

  . TODO 6   Deal out the validation data
             (waits for TODO 5)
  x TODO 7   Deal out the test data
      Every rank tested on all samples.
      (steps/03_sampler/train.cpp:99)
)");
}

TEST(ReportLines, ColoursOnATerminalThatWantsThem) {
  ::setenv("TERM", "xterm", 1);
  ::unsetenv("NO_COLOR");
  const testing::Terminal terminal(24, 80);
  const Look look{.width = 80, .descriptor = terminal.descriptor()};
  const auto report = testing::report(
      course(), "04", {testing::wrong(8, "No average."), testing::verdict(9, State::open)});
  EXPECT_THAT(report_lines(report, course(), look),
              ElementsAre("\033[1m04_ddp\033[0m  The ranks train one model", "",
                          "  \033[31m✗\033[0m TODO 8   Wrap the model in DistributedDataParallel",
                          "\033[1m      No average.\033[0m", "",
                          "  ○ TODO 9   Tell the sampler which epoch it is  \033[2m(open)\033[0m"));
  ::setenv("NO_COLOR", "1", 1);
  EXPECT_THAT(text_of(report_lines(report, course(), look)), Not(HasSubstr("\033")));
  ::unsetenv("NO_COLOR");
}

TEST(ReportLines, TheCompilersWarningsStandBelowWhatIsJudged) {
  auto report = sampler_report();
  report.warnings = {{"ddp.hpp:1:2", "unused 'a'"},
                     {"ddp.hpp:2:2", "unused 'b'"},
                     {"ddp.hpp:3:2", "unused 'c'"},
                     {"ddp.hpp:4:2", "unused 'd'"}};
  EXPECT_EQ(report_from_json(to_json(report)).warnings, report.warnings);
  EXPECT_THAT(text_of(report_lines(report, course(), {.width = 100})), HasSubstr(R"(
  The compiler warns too:
    ddp.hpp:1:2  unused 'a'
    ddp.hpp:2:2  unused 'b'
    ddp.hpp:3:2  unused 'c'
    and 1 more
)"));
  report = testing::report(course(), "04", {testing::verdict(8, State::done)});
  report.warnings = {{"ddp.hpp:1:2", "unused 'a'"}};
  EXPECT_THAT(text_of(report_lines(report, course(), {.width = 100})),
              HasSubstr("\n  The compiler warns:\n    ddp.hpp:1:2  unused 'a'\n"));
  report = testing::report(course(), "04", {testing::verdict(8, State::open)});
  report.warnings = {{"ddp.hpp:1:2", "unused 'a'"}};
  EXPECT_THAT(text_of(report_lines(report, course(), {.width = 100})), Not(HasSubstr("warns")))
      << "what is left to do leaves names without a use";
}

TEST(ReportLines, ACompileErrorStandsAlone) {
  auto report = sampler_report();
  report.compile_error = {.where = "steps/03_sampler/train.cpp:31:5",
                          .message = "use of undeclared identifier 'smapler'",
                          .source = "    smapler.set_epoch(1);\n    ^"};
  report.not_checked = {"NCCL"};
  EXPECT_EQ(text_of(report_lines(report, course(), {.width = 60})),
            R"(✗ steps/03_sampler/train.cpp:31:5 does not compile:

  use of undeclared identifier 'smapler'

      smapler.set_epoch(1);
      ^
)");
}

TEST(ReportLines, ACompileErrorThatIsUnderstoodHasItsTodoAndASentence) {
  auto report = sampler_report();
  report.compile_error = {.where = "steps/03_sampler/train.cpp:31:5",
                          .message = "no matching constructor",
                          .source = "    DistributedSampler s;\n    ^",
                          .todo = 4,
                          .what = "DistributedSampler takes two arguments.",
                          .fix = "Write the options in braces."};
  EXPECT_EQ(text_of(report_lines(report, course(), {.width = 60})),
            R"(✗ steps/03_sampler/train.cpp:31:5 does not compile:
  TODO 4  Make a DistributedSampler for each split

  DistributedSampler takes two arguments.
  Write the options in braces.

  The compiler says:
  no matching constructor

      DistributedSampler s;
      ^
)");
}

TEST(ReportLines, WhatWasNotCheckedAndWhatBelongsToEarlierStepsIsSaid) {
  auto report = testing::report(course(), "05");
  report.verdicts.push_back(testing::wrong(5, "Every rank trained on all samples."));
  report.not_checked = {"NCCL: there is no GPU here"};
  EXPECT_EQ(text_of(report_lines(report, course(), {})),
            R"(05_all_reduce_loss  The reported loss covers all ranks

  ✓ TODO 10  Average the loss over all ranks
  ✗ TODO 5   Deal out the training data  (of step 03_sampler)
      Every rank trained on all samples.

  Not checked:
    NCCL: there is no GPU here
)");
}

TEST(ReportLines, AStudentsOutputCannotMoveTheCursor) {
  auto report = testing::report(course(), "05", {testing::wrong(10, "It printed \033[2J\a.")});
  report.verdicts[0].findings[0].evidence = {"\033[31mred\ttab"};
  const auto text = text_of(report_lines(report, course(), {}));
  EXPECT_THAT(text, HasSubstr("It printed ?[2J?.\n\n      ?[31mred  tab\n"));
}

TEST(ReportLines, ATodoWithoutAnyFindingIsSaidToBeWrongAllTheSame) {
  const auto report = testing::report(course(), "05", {testing::verdict(10, State::wrong)});
  EXPECT_THAT(text_of(report_lines(report, course(), {})), HasSubstr("  ✗ TODO 10  Average"));
  EXPECT_EQ(todo_to_fix(report), 10);
}

TEST(ReportLines, ANoteStandsUnderItsTodo) {
  auto report = sampler_report();
  report.verdicts[0].notes = {{4, "id", "It does so.", "A teacher decides.", {}, ""}};
  EXPECT_THAT(text_of(report_lines(report, course(), {.width = 80})),
              HasSubstr("\n      Note: It does so. A teacher decides.\n"));
}

TEST(NextLines, NameTheTodoItsFileAndTheHint) {
  EXPECT_EQ(text_of(next_lines(course(), 14, {})),
            "Next is TODO 14, Ask for four GPUs, and use them:\n"
            "  edit   sbatch/07_multi_node.sbatch, where it says TODO 14\n"
            "  hint   ./workbook hint 14\n");
  EXPECT_THAT(next_lines(course(), 5, {}, &course().step("05")),
              ::testing::Contains("  edit   steps/05_all_reduce_loss/train.cpp"))
      << "the mistake is in a later step's program";
  const auto last = text_of(next_lines(course(), std::nullopt, {}));
  EXPECT_THAT(
      last, ::testing::StartsWith("You have done all TODOs of the course. What you can do now:\n"));
  EXPECT_THAT(last, HasSubstr("  ./workbook watch collectives "));
}

TEST(TodoToFix, IsTheFirstFindingThenTheFirstThatIsOpen) {
  EXPECT_EQ(todo_to_fix(sampler_report()), 5);
  EXPECT_EQ(todo_to_fix(testing::report(course(), "03", {testing::verdict(6, State::open)})), 6);
  EXPECT_EQ(todo_to_fix(testing::report(course(), "03", {testing::verdict(6, State::not_judged)})),
            std::nullopt);
}

TEST(Look, ReadsTheLocalesName) {
  for (const auto& [locale, unicode] :
       {std::pair{"C.UTF-8", true}, {"de_DE.utf8", true}, {"C", false}, {"de_DE@euro", false}}) {
    ::setenv("LC_ALL", locale, 1);
    EXPECT_EQ(present_look().unicode, unicode) << locale;
  }
  ::setenv("LC_ALL", "C.UTF-8", 1);
}

TEST(Look, LaysTextOut) {
  EXPECT_EQ(columns("\033[31m✗\033[0m ab"), 4U);
  const Look narrow{.width = 24};
  EXPECT_THAT(paragraphs("one two three four five\nsix\n\n  as   it is\nend", 2, narrow),
              ElementsAre("  one two three four", "  five six", "", "    as   it is", "  end"));
  EXPECT_THAT(hanging_line("a  short   one", 2, narrow), ElementsAre("  a  short   one"));
  EXPECT_THAT(hanging_line("it  fits to  the  edge", 2, narrow),
              ElementsAre("  it  fits to  the  edge"));
  EXPECT_THAT(hanging_line("one two three four five six", 2, narrow),
              ElementsAre("  one two three four", "    five six"));
  EXPECT_THAT(paragraphs("", 2, narrow), IsEmpty());
}

TEST(Json, BringsAReportBack) {
  auto report = sampler_report();
  report.compile_error = {
      .where = "w", .message = "m\n\"", .source = "s", .todo = 4, .what = "what", .fix = "fix"};
  report.not_checked = {"NCCL"};
  report.judge_seconds = 1.5;
  report.verdicts[0].notes = {report.verdicts[1].findings[0]};
  const auto text = to_json(report);
  EXPECT_THAT(text, Not(HasSubstr("\n")));
  const auto back = report_from_json(text);
  EXPECT_EQ(to_json(back), text);
  EXPECT_EQ(back.verdicts[1].findings[0].evidence, report.verdicts[1].findings[0].evidence);
  EXPECT_EQ(back.verdicts[2].reason, "waits for TODO 5");
  EXPECT_EQ(back.compile_error->message, "m\n\"");
  EXPECT_EQ(back.compile_error->todo, 4);
  EXPECT_EQ(back.compile_error->what + back.compile_error->fix, "whatfix");
}

TEST(Json, StandsBytesThatAreNoText) {
  const auto report = testing::report(course(), "05", {testing::wrong(10, "\xff\xfe")});
  EXPECT_EQ(report_from_json(to_json(report)).verdicts[0].findings[0].what, "\uFFFD\uFFFD");
  EXPECT_THAT(testing::error_of([] { report_from_json("{\"step\": 3}"); }),
              HasSubstr("Cannot read a report"));
}

}  // namespace
}  // namespace checker
