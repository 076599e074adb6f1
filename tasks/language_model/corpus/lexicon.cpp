#include "lexicon.hpp"

#include <array>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace tasks::corpus {
namespace {

constexpr std::string_view consonants = "bdfgklmnprstvzjh";
constexpr std::string_view vowels = "aeiou";

// Endings by class, of a noun ("kamor", plural "kamors"), an adjective and a verb.
constexpr std::array<std::string_view, 3> noun_endings{"or", "il", "um"};
constexpr std::array<std::string_view, 3> adjective_endings{"isa", "ise", "iso"};
constexpr std::array<std::string_view, 3> verb_endings{"a", "e", "o"};
constexpr std::array<std::string_view, 2> verb_numbers{"t", "nt"};

std::string join(std::string_view a, std::string_view b, std::string_view c = "") {
  return std::string(a).append(b).append(c);
}

}  // namespace

Lexicon::Lexicon(const Sizes& sizes) {
  if (sizes.classes > 3 || sizes.brackets > 3 || sizes.determiners > 2) {
    throw std::invalid_argument("the language has endings for 3 classes and 3 pairs of brackets");
  }
  add_function_words(sizes);
  for (int topic = 0; topic < sizes.topics; ++topic) add_topic(topic, sizes);
  const std::set<std::string_view> different(words_.begin(), words_.end());
  if (ids_.size() != words_.size() || different.size() != words_.size()) {
    throw std::logic_error("a word with two slots or a slot with two words");
  }
}

void Lexicon::add(const Slot& slot, std::string word) {
  ids_.emplace(slot, static_cast<int32_t>(words_.size()));
  slots_.push_back(slot);
  words_.push_back(std::move(word));
}

void Lexicon::add_function_words(const Sizes& sizes) {
  constexpr std::array<std::string_view, 3> openers{"upon", "amid", "beyond"};
  constexpr std::array<std::string_view, 3> closers{"nopu", "dima", "dnoyeb"};
  constexpr std::array<std::string_view, 2> determiners{"th", "wh"};
  add({.kind = Kind::eos}, "<eos>");
  add({.kind = Kind::either}, "either");
  add({.kind = Kind::or_}, "or");
  add({.kind = Kind::echo}, "viz");
  for (int pair = 0; pair < sizes.brackets; ++pair) {
    add({.kind = Kind::opener, .rank = pair}, std::string(openers.at(pair)));
    add({.kind = Kind::closer, .rank = pair}, std::string(closers.at(pair)));
  }
  for (int noun_class = 0; noun_class < sizes.classes; ++noun_class) {
    add({.kind = Kind::that, .noun_class = noun_class}, join("qu", verb_endings.at(noun_class)));
    for (int number = 0; number < 2; ++number) {
      for (int rank = 0; rank < sizes.determiners; ++rank) {
        add({.kind = Kind::determiner, .noun_class = noun_class, .number = number, .rank = rank},
            join(determiners.at(rank), verb_endings.at(noun_class), number == 0 ? "" : "s"));
      }
    }
  }
}

void Lexicon::add_topic(int topic, const Sizes& sizes) {
  for (int rank = 0; rank < sizes.nouns * sizes.classes; ++rank) {
    const int noun_class = rank % sizes.classes;
    const auto word = join(new_stem(), noun_endings.at(noun_class));
    Slot slot{Kind::noun, topic, noun_class, 0, rank / sizes.classes};
    add(slot, word);
    slot.number = 1;
    add(slot, word + "s");
  }
  for (int rank = 0; rank < sizes.verbs; ++rank) {
    const auto stem = new_stem();
    for (int form = 0; form < 2 * sizes.classes; ++form) {
      add({Kind::verb, topic, form / 2, form % 2, rank},
          join(stem, verb_endings.at(form / 2), verb_numbers.at(form % 2)));
    }
  }
  for (int rank = 0; rank < sizes.adjectives; ++rank) {
    const auto stem = new_stem();
    for (int noun_class = 0; noun_class < sizes.classes; ++noun_class) {
      add({Kind::adjective, topic, noun_class, 0, rank},
          join(stem, adjective_endings.at(noun_class)));
    }
  }
  for (int rank = 0; rank < sizes.adverbs; ++rank) {
    add({Kind::adverb, topic, 0, 0, rank}, join(new_stem(), "ely"));
  }
}

// Consonant, vowel, consonant: all 1280 combinations in a scattered order, each once.
std::string Lexicon::new_stem() {
  constexpr uint32_t combinations = 16 * 5 * 16;
  if (stems_ == combinations) throw std::invalid_argument("the language has no more stems");
  const uint32_t number = stems_++ * 509 % combinations;  // 509 is prime: a permutation
  return {consonants[number % 16], vowels[number / 16 % 5], consonants[number / 80]};
}

}  // namespace tasks::corpus
