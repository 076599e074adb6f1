#pragma once
/// A small language with a known entropy. Its sentences have structure that reaches further than
/// neighbouring words:
///
///   sentence  = ["either"] np [relative] vp ["or" vp] ["viz" noun] <eos>
///   np        = determiner [adjective] noun
///   relative  = "that" np verb
///   vp        = verb np [opener adverb [adverb] closer]
///
/// "or" and its vp follow if and only if "either" opened; the noun after "viz" is the subject's,
/// again; verbs agree with their subject in class and number (the main verb across the relative
/// clause, whose own np may differ); "that", adjectives and determiners agree with their noun; a
/// closer matches its opener; and all nouns, verbs, adjectives and adverbs of a sentence come from
/// the lexicons of its one topic. Every sentence is drawn independently of all others.
///
/// Each sentence has exactly one derivation, so that a sentence's probability is the product of its
/// derivation's choices, and the entropy per word is H(derivation) / E[words] (the entropy rate of
/// a source of independent blocks: Cover and Thomas, Elements of Information Theory, chapter 4).
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "bits.hpp"
#include "lexicon.hpp"
#include "table.hpp"

namespace tasks::corpus {

struct NounPhrase {
  int noun_class = 0;
  int number = 0;
  int determiner = 0;
  std::optional<int> adjective = {};
  int noun = 0;
  bool operator==(const NounPhrase&) const = default;
};

struct Aside {
  int bracket = 0;
  int first = 0;
  std::optional<int> second = {};
  bool operator==(const Aside&) const = default;
};

struct VerbPhrase {
  int verb = 0;
  NounPhrase object;
  std::optional<Aside> aside = {};
  bool operator==(const VerbPhrase&) const = default;
};

struct Relative {
  NounPhrase subject;
  int verb = 0;
  bool operator==(const Relative&) const = default;
};

/// A derivation: the choices that make a sentence.
struct Sentence {
  int topic = 0;
  NounPhrase subject;
  std::optional<Relative> relative = {};
  VerbPhrase predicate;
  std::optional<VerbPhrase> alternative = {};  ///< there: the sentence is either ... or ...
  bool echo = false;
  bool operator==(const Sentence&) const = default;
};

/// Expectation over a phrase of the grammar.
struct Measure {
  double entropy = 0;  ///< nats
  double words = 0;
};

class Grammar {
 public:
  explicit Grammar(const Sizes& sizes = {});

  const Lexicon& lexicon() const { return lexicon_; }

  Sentence draw(Bits& bits) const;
  /// ln p of the sentence, <eos> included.
  double log_probability(const Sentence& sentence) const;
  /// Ids of the sentence's words, <eos> last.
  std::vector<int32_t> words(const Sentence& sentence) const;
  /// The derivation of these words; none if they are not a sentence.
  std::optional<Sentence> parse(std::span<const int32_t> words) const;

  /// A sentence's entropy and expected number of words, <eos> included, from the tables alone.
  Measure sentence() const;
  /// The entropy per word in nats: no model's expected loss is below it.
  double entropy() const { return sentence().entropy / sentence().words; }

 private:
  class Drawer;
  class Scorer;
  class Writer;
  class Parser;

  Measure noun_phrase() const;
  Measure verb_phrase() const;

  Lexicon lexicon_;
  Table topic_, noun_class_, number_, determiner_, bracket_, noun_, verb_, adjective_, adverb_;
  Table has_either_, has_adjective_, has_relative_, has_aside_, has_second_adverb_, has_echo_;
};

}  // namespace tasks::corpus
