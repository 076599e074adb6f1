#include "rouge.hpp"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cmath>

#include "greedy.hpp"
#include "oracle.hpp"

namespace tasks::summaries {
namespace {

constexpr double kRounding = 1e-12;

void expect_rouge(const Rouge& score, double one, double two, double longest) {
  EXPECT_NEAR(score.one, one, kRounding);
  EXPECT_NEAR(score.two, two, kRounding);
  EXPECT_NEAR(score.longest, longest, kRounding);
}

// Lin 2004, section 3.1: "police killed the gunman" is the reference, "police kill the gunman" has
// three words of its order, "the gunman kill police" two.
TEST(Rouge, OfThePapersExamples) {
  const std::vector<int64_t> reference{1, 2, 3, 4};  // police killed the gunman
  expect_rouge(rouge({1, 5, 3, 4}, reference), 3.0 / 4, 1.0 / 3, 3.0 / 4);
  expect_rouge(rouge({3, 4, 5, 1}, reference), 3.0 / 4, 1.0 / 3, 2.0 / 4);
}

TEST(Rouge, ByHand) {
  expect_rouge(rouge({1, 2, 3}, {1, 2, 3}), 1, 1, 1);
  expect_rouge(rouge({1, 2, 3}, {4, 5}), 0, 0, 0);
  // A word counts as often as both have it: 2 of 4 and 2 of 3.
  expect_rouge(rouge({7, 7, 7, 7}, {7, 7, 8}), 4.0 / 7, 2.0 / 5, 4.0 / 7);
  // All words, of which three pairs stay together, in an order of which four stay.
  expect_rouge(rouge({3, 4, 5, 1, 2}, {1, 2, 3, 4, 5}), 1, 3.0 / 4, 3.0 / 5);
}

TEST(Rouge, OfFewWords) {
  expect_rouge(rouge({}, {}), 0, 0, 0);
  expect_rouge(rouge({}, {1}), 0, 0, 0);
  expect_rouge(rouge({1}, {}), 0, 0, 0);
  expect_rouge(rouge({1}, {1}), 1, 0, 1);  // no pair in either
}

TEST(Rouge, AgreesWithPython) {
  const auto python = oracle::json("../../../tasks/summaries/tests/rouge_twin.py");
  if (!python) GTEST_SKIP() << oracle::kMissing;
  ASSERT_EQ(python->size(), 300U);
  for (const auto& entry : *python) {
    const auto scores = entry["scores"].get<std::vector<double>>();
    expect_rouge(rouge(entry["candidate"], entry["reference"]), scores[0], scores[1], scores[2]);
  }
}

EncoderDecoder small_model() {
  torch::manual_seed(4);
  return EncoderDecoder({.vocabulary = 9,
                         .width = 8,
                         .heads = 2,
                         .head_width = 4,
                         .feed_forward = 8,
                         .encoder_layers = 1,
                         .decoder_layers = 1,
                         .longest = 12});
}

// The word by word definition: each word is the likeliest after those before it.
TEST(Greedy, WritesTheLikeliestWordEachTime) {
  auto model = small_model();
  const auto documents = torch::randint(2, 9, {5, 6});
  const auto summaries = write_greedily(model, documents, 7);
  ASSERT_EQ(summaries.size(), 5U);
  const torch::NoGradGuard no_grad;
  for (size_t i = 0; i < summaries.size(); ++i) {
    std::vector<int64_t> told{kPad};
    const auto row = static_cast<int64_t>(i);
    for (size_t place = 0; place < 7; ++place) {
      const auto logits =
          model.forward({documents.narrow(0, row, 1), torch::tensor(told).unsqueeze(0)});
      const auto next = logits[0][-1].argmax().item<int64_t>();
      if (next == kEnd || next == kPad) {
        EXPECT_EQ(summaries[i].size(), place);
        break;
      }
      ASSERT_LT(place, summaries[i].size());
      EXPECT_EQ(summaries[i][place], next);
      told.push_back(next);
    }
  }
}

TEST(Greedy, DependsOnNoBatch) {
  auto model = small_model();
  Pairs pairs(6, 5);
  for (int32_t i = 0; i < 7; ++i) pairs.add({3 + i % 3, 4, 1}, {3 + i % 5, 2, 4, 1});
  const auto all = rouge_of_greedy(model, pairs, 7), few = rouge_of_greedy(model, pairs, 2);
  expect_rouge(few, all.one, all.two, all.longest);
}

}  // namespace
}  // namespace tasks::summaries
