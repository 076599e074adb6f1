#include "grammar.hpp"

namespace tasks::corpus {
namespace {

// Probabilities in per cent. The grammar's own: enough of everything to be learned within a minute.
constexpr int plural = 35;
constexpr int either = 25;
constexpr int adjective = 60;
constexpr int relative = 30;
constexpr int aside = 50;
constexpr int second_adverb = 50;
constexpr int echo = 20;

constexpr Measure fixed_word{.entropy = 0, .words = 1};

Measure word(const Table& table) { return {table.entropy(), 1}; }
Measure hidden(const Table& table) { return {table.entropy(), 0}; }  // shown by a later word

Measure operator+(const Measure& a, const Measure& b) {
  return {a.entropy + b.entropy, a.words + b.words};
}

// What is there with the probability that `chance` gives to 1.
Measure maybe(const Table& chance, const Measure& measure) {
  const double p = chance.probability(1);
  return {chance.entropy() + p * measure.entropy, p * measure.words};
}

}  // namespace

Grammar::Grammar(const Sizes& sizes)
    : lexicon_(sizes),
      topic_(Table::zipf(sizes.topics)),
      noun_class_(Table::zipf(sizes.classes)),
      number_(Table::chance(plural)),
      determiner_(Table::zipf(sizes.determiners)),
      bracket_(Table::zipf(sizes.brackets)),
      noun_(Table::zipf(sizes.nouns)),
      verb_(Table::zipf(sizes.verbs)),
      adjective_(Table::zipf(sizes.adjectives)),
      adverb_(Table::zipf(sizes.adverbs)),
      has_either_(Table::chance(either)),
      has_adjective_(Table::chance(adjective)),
      has_relative_(Table::chance(relative)),
      has_aside_(Table::chance(aside)),
      has_second_adverb_(Table::chance(second_adverb)),
      has_echo_(Table::chance(echo)) {}

Measure Grammar::noun_phrase() const {
  // The determiner shows class and number; the topic is the sentence's.
  return hidden(noun_class_) + hidden(number_) + word(determiner_) +
         maybe(has_adjective_, word(adjective_)) + word(noun_);
}

Measure Grammar::verb_phrase() const {
  const Measure inside = word(adverb_) + maybe(has_second_adverb_, word(adverb_));
  return word(verb_) + noun_phrase() + maybe(has_aside_, word(bracket_) + inside + fixed_word);
}

Measure Grammar::sentence() const {
  const Measure clause = fixed_word + noun_phrase() + word(verb_);
  const Measure alternative = fixed_word + fixed_word + verb_phrase();  // "either", "or"
  return hidden(topic_) + noun_phrase() + maybe(has_relative_, clause) + verb_phrase() +
         maybe(has_either_, alternative) + maybe(has_echo_, fixed_word + fixed_word) + fixed_word;
}

}  // namespace tasks::corpus
