#include "course/render.hpp"

#include <gmock/gmock.h>

#include <regex>

#include "files.hpp"
#include "support/text.hpp"

namespace checker {
namespace {

using testing::course;
using ::testing::HasSubstr;
using ::testing::Not;

std::string trainer(const char* step, Rendering which) {
  return render(course(), testing::trainer_file(), course().step(step), which);
}

TEST(Render, AStepHasTheFullTextOfItsOwnTodosOnly) {
  const auto text = trainer("03", Rendering::step);
  EXPECT_THAT(
      text,
      HasSubstr(
          "  // TODO 4: Make a DistributedSampler for each split.\n  //   Make three samplers "));
  EXPECT_THAT(text, HasSubstr("// TODO 7: "));
  EXPECT_THAT(text, Not(HasSubstr("TODO 3:")));
  EXPECT_THAT(text, Not(HasSubstr("TODO 8:")));
  EXPECT_THAT(text, HasSubstr("setup({"));         // solved before
  EXPECT_THAT(text, HasSubstr("RandomSampler("));  // still to do
}

TEST(Render, ASolutionHasOneLinePerPlace) {
  const auto text = trainer("03", Rendering::solution);
  EXPECT_THAT(text, HasSubstr("  // TODO 5: each rank trains on its own share.\n"));
  EXPECT_THAT(text, Not(HasSubstr("//   ")));
  EXPECT_THAT(text, Not(HasSubstr("RandomSampler(")));
  EXPECT_THAT(text, HasSubstr("--world 2 --solution"));
}

TEST(Render, FurtherPlacesGetOneLine) {
  const auto text = trainer("05", Rendering::step);
  EXPECT_THAT(text, HasSubstr("  // TODO 10: Average the loss over all ranks.\n  //   "));
  EXPECT_THAT(text, HasSubstr("\n  // TODO 10, here too: add up the evaluation's totals"));
}

TEST(Render, LinesKnowTheirMarks) {
  const auto& step = course().step("04");
  const auto lines = render_lines(course(), testing::trainer_file(), step, Rendering::solution);
  EXPECT_EQ(text_of(lines), trainer("04", Rendering::solution));
  std::vector<std::string> model;
  for (const auto& line : lines) {
    if (line.mark == "model") model.push_back(line.text);
    if (trim(line.text).starts_with("//")) EXPECT_EQ(line.mark, "") << line.text;
  }
  EXPECT_THAT(model,
              ::testing::ElementsAre("  const auto model = DistributedDataParallel(module);"));
}

TEST(Render, AStudentKeepsTheTextsOfWhatIsDone) {
  const auto text = trainer("05", Rendering::student);
  EXPECT_THAT(text, ::testing::StartsWith("// Step 05: The reported loss covers all ranks.\n"));
  EXPECT_THAT(text, HasSubstr("  // TODO 10: Average the loss over all ranks.\n  //   "));
  EXPECT_THAT(text, HasSubstr("\n  // TODO 10, here too: add up the evaluation's totals"));
  EXPECT_THAT(text, HasSubstr("\n  all_reduce(totals, ReduceOp::SUM);\n"));
  for (const auto& step : course().steps) {
    for (const auto* source : {&testing::trainer_file(), &testing::job_file()}) {
      const auto of = [&](Rendering which) {
        const auto whole = render(course(), *source, step, which);
        return strip_comments(replaced(whole, "bin/solution_", "bin/step_"),
                              source->source.comment());
      };
      EXPECT_EQ(of(Rendering::student), of(Rendering::solution)) << step.name;
    }
  }
  const auto job = render(course(), testing::job_file(), course().step("07"), Rendering::student);
  EXPECT_THAT(job, HasSubstr("program=build/cuda/bin/step_07\n"));
}

TEST(Render, NoMarkerDirectiveOrDoubleBlankLineIsLeft) {
  for (const auto& [file, text] : render_all(course())) {
    SCOPED_TRACE(file);
    EXPECT_THAT(text, Not(HasSubstr("@todo")));
    EXPECT_THAT(text, Not(HasSubstr("@header")));
    EXPECT_THAT(text, Not(::testing::ContainsRegex("  (//|#)@")));
    EXPECT_THAT(text, Not(::testing::ContainsRegex("@[A-Z]+@")));
    EXPECT_THAT(text, Not(HasSubstr("\n\n\n")));
    if (file.extension() == ".svg") continue;  // nobody reads its source
    for (const auto& line : split_lines(text)) {
      EXPECT_FALSE(line.starts_with("#if") || line.starts_with("#endif")) << line;
      EXPECT_LE(line.size(), 100U) << line;
      EXPECT_EQ(line, line.substr(0, line.find_last_not_of(' ') + 1)) << "blanks at the end";
    }
  }
}

TEST(Render, EveryStepIsTheSolutionBeforeItButForComments) {
  EXPECT_NO_THROW(check_continuity(course()));
  auto todos_alone = course();
  for (auto& step : todos_alone.steps) step.given.clear();
  for (size_t i = 1; i < todos_alone.steps.size() && !todos_alone.steps[i].is_beside(); ++i) {
    const auto of = [&](size_t step, Rendering which) {
      return render(todos_alone, testing::trainer_file(), todos_alone.steps[step], which);
    };
    const auto given = of(i, Rendering::step), before = of(i - 1, Rendering::solution);
    EXPECT_EQ(strip_comments(given, "//"), strip_comments(before, "//"));
    EXPECT_NE(given, before);
  }
}

TEST(Render, WhatIsGivenStandsInTheStepAsGivenAndInAllThatFollows) {
  auto changed = course();
  changed.steps.at(2).given = {"SETUP", "CHECKPOINT"};
  const auto features = [&](size_t step, Rendering which) {
    return features_until(changed, changed.steps.at(step), which);
  };
  EXPECT_FALSE(features(1, Rendering::solution).contains("CHECKPOINT"));
  EXPECT_TRUE(features(2, Rendering::step).contains("CHECKPOINT"));
  EXPECT_TRUE(features(2, Rendering::solution).contains("CHECKPOINT"));
  EXPECT_TRUE(features(3, Rendering::step).contains("CHECKPOINT"));
}

TEST(Render, ContinuityNoticesACommentThatIsTakenForATodos) {
  const testing::CourseCopy copy;
  copy.replace("train.cpp", "    //@todo 9\n", "    //@todo 9\n    //   Not of the TODO.\n");
  const auto spoilt = load_course(copy.path());
  EXPECT_THAT(testing::error_of([&] { check_continuity(spoilt); }),
              HasSubstr("step 04_ddp starts with other code than the solution of 03_sampler"));
}

TEST(Render, StrippingLeavesOrdinaryComments) {
  EXPECT_EQ(
      strip_comments("// Head\n//\n// more\n\n// kept\nint i;\n  // TODO 1: Do.\n  //   text\n"
                     "  // kept too\n  int j;  // TODO 2 in a line stays\n",
                     "//"),
      "\n// kept\nint i;\n  // kept too\n  int j;  // TODO 2 in a line stays\n");
  EXPECT_EQ(
      strip_comments("#!/bin/bash\n# Head\n#SBATCH --nodes=1\n# TODO 1: x\n#   y\necho\n", "#"),
      "#!/bin/bash\n#SBATCH --nodes=1\necho\n");
}

TEST(Render, OnlyAStepThatEditsTheJobHasASolvedJob) {
  const auto files = render_all(course());
  EXPECT_TRUE(files.contains("solutions/07_multi_node/07_multi_node.sbatch"));
  EXPECT_FALSE(files.contains("solutions/06_rank_zero/06_rank_zero.sbatch"));
  for (const auto& step : course().steps) {
    if (step.is_beside()) continue;
    EXPECT_TRUE(files.contains("sbatch/" + step.name + ".sbatch"));
    EXPECT_TRUE(files.contains("steps/" + step.name + "/train.cpp"));
    EXPECT_TRUE(files.contains("solutions/" + step.name + "/train.cpp"));
  }
}

TEST(Render, NoTextRefersToALineNumber) {
  const std::regex line_number("\\b[Ll]ines? [0-9]");
  for (const auto& [number, todo] : course().todos) {
    for (const auto& text : {todo.text, todo.hint, todo.shape, todo.explanation}) {
      EXPECT_FALSE(std::regex_search(text, line_number)) << "TODO " << number;
    }
  }
}

}  // namespace
}  // namespace checker
