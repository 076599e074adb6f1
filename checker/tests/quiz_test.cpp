// The quiz: its questions, and what is said and remembered of answers. What proofs show is tested
// where trainers are.
#include "course/quiz.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "state/memory.hpp"
#include "student.hpp"
#include "support/error.hpp"
#include "verbs/verbs.hpp"

namespace checker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Quiz, HasConceptsAndProofs) {
  const auto questions = load_quiz(testing::chapters_folder(), testing::course());
  const auto concepts =
      std::ranges::count_if(questions, [](const Question& each) { return !each.proof; });
  EXPECT_GE(concepts, 15);
  EXPECT_GE(questions.size() - static_cast<size_t>(concepts), 5U);
  std::map<size_t, size_t> right;
  for (const auto& question : questions) ++right[question.right];
  for (const auto& [place, count] : right) {
    EXPECT_LE(count, questions.size() * 2 / 3) << "guessing " << letter_of(place) << " would do";
  }
}

class QuizFile : public ::testing::Test {
 protected:
  std::string error_of(const std::string& text) const {
    write_file(folder_.path() / "quiz.yaml", text);
    return testing::error_of([&] { load_quiz(folder_.path(), testing::course()); });
  }

 private:
  TemporaryFolder folder_;
};

TEST_F(QuizFile, WhatDoesNotFitIsAnErrorWithItsPlace) {
  const std::string head = "questions:\n- name: x\n  ask: y\n  why: z\n";
  EXPECT_EQ(error_of(head + "  choices: [one, two]\n  right: b\n"), "no error");
  EXPECT_THAT(error_of(head + "  choices: [one, two]\n  right: c\n"),
              HasSubstr("quiz.yaml:6: right must be the letter of a choice."));
  EXPECT_THAT(error_of(head + "  choices: [one, one]\n  right: a\n"),
              HasSubstr("different choices"));
  EXPECT_THAT(error_of(head + "  choices: [one]\n  right: a\n"), HasSubstr("two to six"));
  const auto proof = head + "  choices: [one, two]\n  right: b\n  proof: ";
  EXPECT_THAT(error_of(proof + "{run: \"88\", shows: x}\n"), HasSubstr("Unknown step: 88"));
  EXPECT_THAT(error_of(proof + "{run: \"06\", shows: \"(\"}\n"), HasSubstr("quiz.yaml:7"));
  EXPECT_THAT(error_of(proof + "{run: \"06\", world: two, shows: x}\n"), HasSubstr("a number"));
  EXPECT_THAT(error_of("questions: []\n"), HasSubstr("a list of questions"));
}

class QuizTest : public ::testing::Test {
 protected:
  std::string quiz(const Arguments& arguments, const std::string& typed = "") {
    std::istringstream input(typed);
    auto* const before = std::cin.rdbuf(input.rdbuf());
    std::cin.clear();
    std::string text;
    try {
      text = testing::printed([&] { status_ = run_quiz(student_.project, arguments); });
    } catch (...) {
      std::cin.rdbuf(before);
      throw;
    }
    std::cin.rdbuf(before);
    return text;
  }

  testing::Student student_;
  int status_ = -1;
};

TEST_F(QuizTest, AsksInOrderAndSaysWhy) {
  const auto first = quiz({"--no-run"}, "z\n b \n");
  EXPECT_EQ(status_, 0) << first;
  EXPECT_THAT(first, ::testing::StartsWith("two_ranks_print\n\n  In step 02 each rank calls"));
  EXPECT_THAT(first, HasSubstr("\n  a  once\n  b  twice\n"));
  EXPECT_THAT(first, HasSubstr("Your answer (a to d)?\nYour answer (a to d)?\nRight.\n"));
  EXPECT_THAT(first, HasSubstr("\n  Both ranks are whole programs."));
  EXPECT_THAT(first, Not(HasSubstr("Let us see"))) << "--no-run";
  const auto second = quiz({"--no-run", "--answer", "a"});
  EXPECT_EQ(status_, 1);
  EXPECT_THAT(second, ::testing::StartsWith("own_shares_own_losses\n"));
  EXPECT_THAT(second, HasSubstr("No, the answer is b.\n"));
  const auto list = quiz({"--list"});
  EXPECT_THAT(list, HasSubstr("✓ two_ranks_print\n  ✗ own_shares_own_losses\n  ○ "));
  EXPECT_THAT(list, HasSubstr("\n1 of "));
}

TEST_F(QuizTest, WithoutAnAnswerItSaysHowToGiveOne) {
  EXPECT_THAT(quiz({"why_broadcast"}), HasSubstr("./workbook quiz why_broadcast --answer a"));
  EXPECT_EQ(status_, 1);
  EXPECT_TRUE(recall(student_.project).quiz.empty());
  EXPECT_THROW(quiz({"why_broadcast", "--answer", "x"}), UsageError);
  EXPECT_THAT(testing::error_of([&] { quiz({"why_brodcast"}); }),
              HasSubstr("Did you mean 'why_broadcast'?"));
}

TEST_F(QuizTest, WrongAnswersComeAgainAndThenTheCatalogue) {
  const auto questions = load_quiz(testing::chapters_folder(), student_.course);
  for (const auto& question : questions) remember_answer(student_.project, question.name, true);
  remember_answer(student_.project, questions[3].name, false);
  EXPECT_THAT(quiz({"--no-run", "--answer", letter_of(questions[3].right)}),
              ::testing::StartsWith(questions[3].name + "\n"));
  const auto drawn = quiz({"--no-run", "--answer", "a"});
  EXPECT_THAT(drawn, HasSubstr("Somebody changed the solution of step "));
  EXPECT_THAT(drawn, ::testing::ContainsRegex("\n    [-+]")) << "it shows what was changed";
  const auto next = quiz({"--no-run", "--answer", "a"});
  EXPECT_NE(drawn.substr(0, drawn.find('\n')), next.substr(0, next.find('\n')));
}

TEST_F(QuizTest, ProgramsOfTheCatalogueAreRightOrWrong) {
  const auto wrong = quiz({"8_inner_module_called", "--no-run", "--answer", "b"});
  EXPECT_EQ(status_, 0);
  EXPECT_THAT(wrong, HasSubstr("+  const auto output = model->module()->forward(input);"));
  EXPECT_THAT(wrong, HasSubstr("The idea behind it: The wrapped model is in module()"));
  quiz({"8_averaged_by_hand", "--no-run", "--answer", "a"});
  EXPECT_EQ(status_, 0);
  quiz({"8_averaged_by_hand", "--no-run", "--answer", "b"});
  EXPECT_EQ(status_, 1);
}

}  // namespace
}  // namespace checker
