#pragma once
/// The words of the made-up language. Every word fills one kind of slot only, and shows all that
/// agrees in it: this is what makes sentences unambiguous.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tasks::corpus {

enum class Kind {
  eos,
  either,
  or_,
  echo,
  that,
  opener,
  closer,
  determiner,
  adjective,
  noun,
  verb,
  adverb
};

/// What a word stands for; what its kind does not show stays 0.
struct Slot {
  Kind kind{};
  int topic = 0;
  int noun_class = 0;
  int number = 0;  ///< 0 singular, 1 plural
  int rank = 0;    ///< within the lexicon of all the above, most frequent first

  auto operator<=>(const Slot&) const = default;
};

/// How many of each there are.
struct Sizes {
  int topics = 4;
  int classes = 3;
  int determiners = 2;  ///< per class and number
  int brackets = 3;     ///< pairs of an opener and a closer
  int nouns = 36;       ///< stems per topic and class; two numbers each
  int verbs = 20;       ///< stems per topic; an ending for each class and number
  int adjectives = 24;  ///< stems per topic; an ending for each class
  int adverbs = 36;     ///< per topic
};

class Lexicon {
 public:
  explicit Lexicon(const Sizes& sizes);

  int32_t id(const Slot& slot) const { return ids_.at(slot); }
  const Slot& slot(int32_t id) const { return slots_.at(static_cast<size_t>(id)); }
  /// The word of every id; all different.
  const std::vector<std::string>& words() const { return words_; }

 private:
  void add(const Slot& slot, std::string word);
  void add_function_words(const Sizes& sizes);
  void add_topic(int topic, const Sizes& sizes);
  std::string new_stem();

  std::vector<std::string> words_;
  std::vector<Slot> slots_;
  std::map<Slot, int32_t> ids_;
  uint32_t stems_ = 0;
};

}  // namespace tasks::corpus
