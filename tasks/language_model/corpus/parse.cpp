// Words back to their derivation. At every word its kind decides what it is, so that there is no
// second derivation to find; the tests see that each sentence drawn comes back as it was.
#include "grammar.hpp"

namespace tasks::corpus {

class Grammar::Parser {
 public:
  Parser(const Lexicon& lexicon, std::span<const int32_t> words)
      : lexicon_(lexicon), words_(words) {}

  std::optional<Sentence> sentence() {
    Sentence sentence;
    const bool opened = take(Kind::either).has_value();
    sentence.subject = noun_phrase();
    if (const auto that = take(Kind::that)) {
      expect(that->noun_class == sentence.subject.noun_class);
      sentence.relative.emplace();
      sentence.relative->subject = noun_phrase();
      sentence.relative->verb = verb(sentence.relative->subject);
    }
    sentence.predicate = verb_phrase(sentence.subject);
    if (opened) {
      need(Kind::or_);
      sentence.alternative = verb_phrase(sentence.subject);
    }
    sentence.echo = take(Kind::echo).has_value();
    if (sentence.echo) {
      const Slot copy = topical(Kind::noun);
      const NounPhrase& subject = sentence.subject;
      expect(copy.noun_class == subject.noun_class && copy.number == subject.number &&
             copy.rank == subject.noun);
    }
    need(Kind::eos);
    expect(at_ == words_.size());
    sentence.topic = topic_.value_or(0);
    if (failed_) return std::nullopt;
    return sentence;
  }

 private:
  NounPhrase noun_phrase() {
    NounPhrase phrase;
    const Slot determiner = need(Kind::determiner);
    phrase.noun_class = determiner.noun_class;
    phrase.number = determiner.number;
    phrase.determiner = determiner.rank;
    if (peek(Kind::adjective)) {
      const Slot modifier = topical(Kind::adjective);
      expect(modifier.noun_class == phrase.noun_class);
      phrase.adjective = modifier.rank;
    }
    const Slot noun = topical(Kind::noun);
    expect(noun.noun_class == phrase.noun_class && noun.number == phrase.number);
    phrase.noun = noun.rank;
    return phrase;
  }

  int verb(const NounPhrase& subject) {
    const Slot verb = topical(Kind::verb);
    expect(verb.noun_class == subject.noun_class && verb.number == subject.number);
    return verb.rank;
  }

  VerbPhrase verb_phrase(const NounPhrase& subject) {
    VerbPhrase phrase;
    phrase.verb = verb(subject);
    phrase.object = noun_phrase();
    if (const auto opener = take(Kind::opener)) {
      phrase.aside.emplace();
      phrase.aside->bracket = opener->rank;
      phrase.aside->first = topical(Kind::adverb).rank;
      if (peek(Kind::adverb)) phrase.aside->second = topical(Kind::adverb).rank;
      expect(need(Kind::closer).rank == opener->rank);
    }
    return phrase;
  }

  bool peek(Kind kind) const {
    return at_ < words_.size() && lexicon_.slot(words_[at_]).kind == kind;
  }

  std::optional<Slot> take(Kind kind) {
    if (!peek(kind)) return std::nullopt;
    return lexicon_.slot(words_[at_++]);
  }

  Slot need(Kind kind) {
    const auto slot = take(kind);
    expect(slot.has_value());
    return slot.value_or(Slot{});
  }

  // A word that shows the topic: the first one sets it.
  Slot topical(Kind kind) {
    const Slot slot = need(kind);
    if (!topic_) topic_ = slot.topic;
    expect(slot.topic == *topic_);
    return slot;
  }

  void expect(bool condition) { failed_ = failed_ || !condition; }

  const Lexicon& lexicon_;
  std::span<const int32_t> words_;
  size_t at_ = 0;
  std::optional<int> topic_;
  bool failed_ = false;
};

std::optional<Sentence> Grammar::parse(std::span<const int32_t> words) const {
  return Parser(lexicon_, words).sentence();
}

}  // namespace tasks::corpus
