// A random derivation, and the probability of a given one: the same choices in the same order.
#include "grammar.hpp"

namespace tasks::corpus {

class Grammar::Drawer {
 public:
  Drawer(const Grammar& grammar, Bits& bits) : grammar_(grammar), bits_(bits) {}

  Sentence sentence() {
    Sentence sentence;
    const bool either = choose(grammar_.has_either_) == 1;
    sentence.topic = choose(grammar_.topic_);
    sentence.subject = noun_phrase();
    if (choose(grammar_.has_relative_) == 1) {
      sentence.relative.emplace();
      sentence.relative->subject = noun_phrase();
      sentence.relative->verb = choose(grammar_.verb_);
    }
    sentence.predicate = verb_phrase();
    if (either) sentence.alternative = verb_phrase();
    sentence.echo = choose(grammar_.has_echo_) == 1;
    return sentence;
  }

 private:
  NounPhrase noun_phrase() {
    NounPhrase phrase;
    phrase.noun_class = choose(grammar_.noun_class_);
    phrase.number = choose(grammar_.number_);
    phrase.determiner = choose(grammar_.determiner_);
    if (choose(grammar_.has_adjective_) == 1) phrase.adjective = choose(grammar_.adjective_);
    phrase.noun = choose(grammar_.noun_);
    return phrase;
  }

  VerbPhrase verb_phrase() {
    VerbPhrase phrase;
    phrase.verb = choose(grammar_.verb_);
    phrase.object = noun_phrase();
    if (choose(grammar_.has_aside_) == 1) {
      phrase.aside.emplace();
      phrase.aside->bracket = choose(grammar_.bracket_);
      phrase.aside->first = choose(grammar_.adverb_);
      if (choose(grammar_.has_second_adverb_) == 1) {
        phrase.aside->second = choose(grammar_.adverb_);
      }
    }
    return phrase;
  }

  int choose(const Table& table) { return table.draw(bits_); }

  const Grammar& grammar_;
  Bits& bits_;
};

class Grammar::Scorer {
 public:
  explicit Scorer(const Grammar& grammar) : grammar_(grammar) {}

  double sentence(const Sentence& sentence) {
    chose(grammar_.has_either_, sentence.alternative.has_value());
    chose(grammar_.topic_, sentence.topic);
    noun_phrase(sentence.subject);
    chose(grammar_.has_relative_, sentence.relative.has_value());
    if (sentence.relative) {
      noun_phrase(sentence.relative->subject);
      chose(grammar_.verb_, sentence.relative->verb);
    }
    verb_phrase(sentence.predicate);
    if (sentence.alternative) verb_phrase(*sentence.alternative);
    chose(grammar_.has_echo_, sentence.echo);
    return sum_;
  }

 private:
  void noun_phrase(const NounPhrase& phrase) {
    chose(grammar_.noun_class_, phrase.noun_class);
    chose(grammar_.number_, phrase.number);
    chose(grammar_.determiner_, phrase.determiner);
    chose(grammar_.has_adjective_, phrase.adjective.has_value());
    if (phrase.adjective) chose(grammar_.adjective_, *phrase.adjective);
    chose(grammar_.noun_, phrase.noun);
  }

  void verb_phrase(const VerbPhrase& phrase) {
    chose(grammar_.verb_, phrase.verb);
    noun_phrase(phrase.object);
    chose(grammar_.has_aside_, phrase.aside.has_value());
    if (!phrase.aside) return;
    chose(grammar_.bracket_, phrase.aside->bracket);
    chose(grammar_.adverb_, phrase.aside->first);
    chose(grammar_.has_second_adverb_, phrase.aside->second.has_value());
    if (phrase.aside->second) chose(grammar_.adverb_, *phrase.aside->second);
  }

  void chose(const Table& table, int outcome) { sum_ += table.log_probability(outcome); }

  const Grammar& grammar_;
  double sum_ = 0;
};

Sentence Grammar::draw(Bits& bits) const { return Drawer(*this, bits).sentence(); }

double Grammar::log_probability(const Sentence& sentence) const {
  return Scorer(*this).sentence(sentence);
}

}  // namespace tasks::corpus
