#include "corpus/grammar.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

namespace tasks::corpus {
namespace {

// A language small enough to write down all that it can say: 172,800 sentences.
constexpr Sizes tiny{.topics = 2,
                     .classes = 1,
                     .determiners = 1,
                     .brackets = 1,
                     .nouns = 2,
                     .verbs = 1,
                     .adjectives = 1,
                     .adverbs = 1};

std::vector<NounPhrase> all_noun_phrases() {
  std::vector<NounPhrase> all;
  for (const int number : {0, 1}) {
    for (const int noun : {0, 1}) {
      all.push_back({0, number, 0, std::nullopt, noun});
      all.push_back({0, number, 0, 0, noun});
    }
  }
  return all;
}

std::vector<std::optional<Relative>> all_relatives() {
  std::vector<std::optional<Relative>> all{std::nullopt};
  for (const auto& subject : all_noun_phrases()) all.push_back(Relative{subject, 0});
  return all;
}

std::vector<VerbPhrase> all_verb_phrases() {
  std::vector<VerbPhrase> all;
  for (const auto& object : all_noun_phrases()) {
    all.push_back({0, object, std::nullopt});
    all.push_back({0, object, Aside{0, 0, std::nullopt}});
    all.push_back({0, object, Aside{0, 0, 0}});
  }
  return all;
}

std::vector<Sentence> all_sentences() {
  const auto predicates = all_verb_phrases();
  std::vector<std::optional<VerbPhrase>> alternatives{std::nullopt};
  alternatives.insert(alternatives.end(), predicates.begin(), predicates.end());
  std::vector<Sentence> all;
  for (const int topic : {0, 1}) {
    for (const auto& subject : all_noun_phrases()) {
      for (const auto& relative : all_relatives()) {
        for (const auto& predicate : predicates) {
          for (const auto& alternative : alternatives) {
            for (const bool echo : {false, true}) {
              all.push_back({topic, subject, relative, predicate, alternative, echo});
            }
          }
        }
      }
    }
  }
  return all;
}

TEST(Table, HasProbabilitiesThatSumToOne) {
  for (const auto& table : {Table::zipf(1), Table::zipf(36), Table::chance(25), Table({1, 2, 3})}) {
    double sum = 0;
    for (int outcome = 0; outcome < table.size(); ++outcome) sum += table.probability(outcome);
    EXPECT_NEAR(sum, 1, 1e-15);
  }
}

TEST(Table, DrawsByItsProbabilities) {
  const Table table({1, 2, 5});
  Bits bits(1);
  std::map<int, int> counts;
  constexpr int draws = 80000;
  for (int i = 0; i < draws; ++i) ++counts[table.draw(bits)];
  for (int outcome = 0; outcome < 3; ++outcome) {
    const double p = table.probability(outcome);
    EXPECT_NEAR(counts[outcome], p * draws, 4 * std::sqrt(draws * p * (1 - p)));
  }
}

TEST(Grammar, GivesAllSentencesProbabilitiesThatSumToOneAndTheEntropyThatItSays) {
  const Grammar grammar(tiny);
  double sum = 0, entropy = 0, words = 0;
  for (const auto& sentence : all_sentences()) {
    const double log_p = grammar.log_probability(sentence);
    sum += std::exp(log_p);
    entropy -= std::exp(log_p) * log_p;
    words += std::exp(log_p) * double(grammar.words(sentence).size());
  }
  EXPECT_NEAR(sum, 1, 1e-10);
  EXPECT_NEAR(entropy, grammar.sentence().entropy, 1e-9);
  EXPECT_NEAR(words, grammar.sentence().words, 1e-9);
}

TEST(Grammar, HasOneDerivationForEverySentence) {
  const Grammar grammar(tiny);
  std::set<std::vector<int32_t>> seen;
  const auto all = all_sentences();
  for (const auto& sentence : all) {
    auto words = grammar.words(sentence);
    ASSERT_EQ(grammar.parse(words), sentence);
    seen.insert(std::move(words));
  }
  EXPECT_EQ(seen.size(), all.size());
}

TEST(Grammar, RecoversWhatItDraws) {
  const Grammar grammar;
  Bits bits(3);
  for (int i = 0; i < 2000; ++i) {
    const auto sentence = grammar.draw(bits);
    ASSERT_EQ(grammar.parse(grammar.words(sentence)), sentence);
  }
}

TEST(Grammar, RefusesWhatItCannotSay) {
  const Grammar grammar;
  const auto& lexicon = grammar.lexicon();
  Bits bits(4);
  for (int i = 0; i < 200; ++i) {
    const auto words = grammar.words(grammar.draw(bits));
    for (size_t at = 0; at < words.size(); ++at) {
      auto wrong = words;
      // The same word with another class or topic: agreement is broken, or there is none to break.
      Slot slot = lexicon.slot(words[at]);
      if (slot.kind == Kind::verb) {
        slot.noun_class = (slot.noun_class + 1) % 3;
      } else if (slot.kind == Kind::closer) {
        slot.rank = (slot.rank + 1) % 3;
      } else {
        continue;
      }
      wrong[at] = lexicon.id(slot);
      EXPECT_EQ(grammar.parse(wrong), std::nullopt);
    }
    EXPECT_EQ(grammar.parse(std::span(words).first(words.size() - 1)), std::nullopt);
    auto longer = words;
    longer.push_back(words.back());
    EXPECT_EQ(grammar.parse(longer), std::nullopt);
  }
}

TEST(Grammar, HasTheEntropyThatItsTextShows) {
  const Grammar grammar;
  Bits bits(5);
  double nats = 0, words = 0;
  std::vector<std::pair<double, double>> sentences;
  for (int i = 0; i < 20000; ++i) {
    const auto sentence = grammar.draw(bits);
    const auto length = double(grammar.words(sentence).size());
    sentences.emplace_back(-grammar.log_probability(sentence), length);
    nats += sentences.back().first;
    words += length;
  }
  const double rate = nats / words;
  double squares = 0;  // of a ratio of sums: the delta method
  for (const auto& [x, length] : sentences) squares += std::pow(x - rate * length, 2);
  const double standard_error = std::sqrt(squares) / words;
  EXPECT_LT(standard_error, 0.005);
  EXPECT_NEAR(rate, grammar.entropy(), 3 * standard_error);
}

TEST(Grammar, HasTheEntropyThatItIsKnownFor) {
  const Grammar grammar;
  EXPECT_EQ(grammar.lexicon().words().size(), 1801u);
  EXPECT_NEAR(grammar.entropy(), 2.6425932583, 1e-9);
  EXPECT_NEAR(grammar.sentence().words, 12.5675, 1e-12);
}

TEST(Lexicon, HasDifferentWords) {
  const Grammar grammar;
  const auto& words = grammar.lexicon().words();
  EXPECT_EQ(std::set(words.begin(), words.end()).size(), words.size());
  for (size_t id = 0; id < words.size(); ++id) {
    EXPECT_EQ(grammar.lexicon().id(grammar.lexicon().slot(int32_t(id))), int32_t(id));
  }
}

}  // namespace
}  // namespace tasks::corpus
