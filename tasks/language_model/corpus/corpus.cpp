#include "corpus.hpp"

namespace tasks::corpus {

std::vector<int32_t> generate(const Grammar& grammar, uint64_t seed, int64_t words) {
  Bits bits(seed);
  std::vector<int32_t> text;
  while (static_cast<int64_t>(text.size()) < words) {
    const auto sentence = grammar.words(grammar.draw(bits));
    text.insert(text.end(), sentence.begin(), sentence.end());
  }
  return text;
}

}  // namespace tasks::corpus
