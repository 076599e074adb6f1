// A derivation as words: here agreement happens.
#include "grammar.hpp"

namespace tasks::corpus {

class Grammar::Writer {
 public:
  Writer(const Lexicon& lexicon, int topic) : lexicon_(lexicon), topic_(topic) {}

  std::vector<int32_t> sentence(const Sentence& sentence) {
    const NounPhrase& subject = sentence.subject;
    if (sentence.alternative) add({.kind = Kind::either});
    noun_phrase(subject);
    if (sentence.relative) {
      add({.kind = Kind::that, .noun_class = subject.noun_class});
      noun_phrase(sentence.relative->subject);
      verb(sentence.relative->verb, sentence.relative->subject);
    }
    verb_phrase(sentence.predicate, subject);
    if (sentence.alternative) {
      add({.kind = Kind::or_});
      verb_phrase(*sentence.alternative, subject);
    }
    if (sentence.echo) {
      add({.kind = Kind::echo});
      noun(subject);
    }
    add({.kind = Kind::eos});
    return std::move(words_);
  }

 private:
  void noun_phrase(const NounPhrase& phrase) {
    add({Kind::determiner, 0, phrase.noun_class, phrase.number, phrase.determiner});
    if (phrase.adjective) {
      add({Kind::adjective, topic_, phrase.noun_class, 0, *phrase.adjective});
    }
    noun(phrase);
  }

  void noun(const NounPhrase& phrase) {
    add({Kind::noun, topic_, phrase.noun_class, phrase.number, phrase.noun});
  }

  void verb(int rank, const NounPhrase& subject) {
    add({Kind::verb, topic_, subject.noun_class, subject.number, rank});
  }

  void verb_phrase(const VerbPhrase& phrase, const NounPhrase& subject) {
    verb(phrase.verb, subject);
    noun_phrase(phrase.object);
    if (!phrase.aside) return;
    add({.kind = Kind::opener, .rank = phrase.aside->bracket});
    add({Kind::adverb, topic_, 0, 0, phrase.aside->first});
    if (phrase.aside->second) add({Kind::adverb, topic_, 0, 0, *phrase.aside->second});
    add({.kind = Kind::closer, .rank = phrase.aside->bracket});
  }

  void add(const Slot& slot) { words_.push_back(lexicon_.id(slot)); }

  const Lexicon& lexicon_;
  int topic_;
  std::vector<int32_t> words_;
};

std::vector<int32_t> Grammar::words(const Sentence& sentence) const {
  return Writer(lexicon_, sentence.topic).sentence(sentence);
}

}  // namespace tasks::corpus
