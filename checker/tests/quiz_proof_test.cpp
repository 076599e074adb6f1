// What the quiz shows as its answers are answers: each proof runs and shows what it must.
#include "verbs/quiz_proof.hpp"

#include <gmock/gmock.h>

#include "course/catalogue.hpp"
#include "files.hpp"

namespace checker {
namespace {

Project project() {
  Project here;
  here.source = PROJECT_FOLDER;
  here.build = std::filesystem::path(PROGRAM_FOLDER).parent_path();
  here.cmake = cached(here, "CMAKE_COMMAND");
  here.ninja = cached(here, "CMAKE_MAKE_PROGRAM");
  return here;
}

TEST(QuizProofs, ShowWhatTheyMust) {
  const auto questions = load_quiz(testing::chapters_folder(), testing::course());
  for (const auto& question : questions) {
    if (!question.proof) continue;
    ::testing::internal::CaptureStdout();
    const auto shown = show_proof(project(), testing::course(), *question.proof);
    const auto said = ::testing::internal::GetCapturedStdout();
    EXPECT_TRUE(proves(*question.proof, shown)) << question.name << " showed:\n" << said;
  }
}

TEST(QuizProofs, CountTheLinesThatFit) {
  Proof proof;
  proof.shows = "test loss: [0-9]";
  EXPECT_TRUE(proves(proof, {"x", "[rank 1] test loss: 4"}));
  EXPECT_FALSE(proves(proof, {"test loss: none"}));
  proof.times = 2;
  EXPECT_FALSE(proves(proof, {"test loss: 1"}));
  EXPECT_TRUE(proves(proof, {"test loss: 1", "test loss: 2"}));
}

TEST(QuizProofs, TheJudgeSaysWhatIsWrongWithAProgramOfTheCatalogue) {
  const auto& course = testing::course();
  for (const auto& entry : load_catalogue(course)) {
    const bool wrong = entry.name == "inner_module_called",
               right = entry.name == "averaged_by_hand";
    if (entry.todo != 8 || (!wrong && !right)) continue;
    ::testing::internal::CaptureStdout();
    const auto said =
        show_verdict(project(), course, course.step("04"),
                     apply_edits(entry, lines_for(entry, course, Rendering::solution)));
    ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(said.front() == "  Nothing is wrong with it.", right) << said.front();
  }
}

}  // namespace
}  // namespace checker
