#include "corpus/corpus.hpp"

#include <gtest/gtest.h>

#include "instrumentation/fnv1a.hpp"

namespace tasks::corpus {
namespace {

uint64_t hash(const std::vector<int32_t>& ids) {
  return instrumentation::fnv1a({reinterpret_cast<const char*>(ids.data()), 4 * ids.size()});
}

TEST(Corpus, IsTheSameOnEveryMachine) {
  const Grammar grammar;
  EXPECT_EQ(hash(generate(grammar, 0, 10000)), 6705986580089740927u);
  EXPECT_EQ(hash(generate(grammar, 0, 10000)), hash(generate(grammar, 0, 10000)));
  std::string text;
  for (const auto id : generate(grammar, 0, 10))
    text += grammar.lexicon().words()[size_t(id)] + " ";
  EXPECT_EQ(text, "either thas babors pitant whe kiril or selant tha zudor viz babors <eos> ");
}

TEST(Corpus, DiffersBySeed) {
  const Grammar grammar;
  EXPECT_NE(generate(grammar, 0, 1000), generate(grammar, 1, 1000));
}

TEST(Corpus, EndsWithAWholeSentence) {
  const Grammar grammar;
  const auto text = generate(grammar, 7, 1000);
  EXPECT_GE(text.size(), 1000u);
  EXPECT_LT(text.size(), 1100u);
  EXPECT_EQ(text.back(), grammar.lexicon().id({.kind = Kind::eos}));
  EXPECT_TRUE(generate(grammar, 7, 0).empty());
}

TEST(Bits, AreUniformBelowAnyBound) {
  Bits bits(1);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LT(bits.below(3), 3u);
    EXPECT_EQ(bits.below(1), 0u);
    EXPECT_LT(bits.below(UINT64_MAX), UINT64_MAX);
  }
  int upper = 0;  // 3 * 2^62: without rejection the lower third would be twice as likely
  constexpr uint64_t bound = uint64_t{3} << 62;
  for (int i = 0; i < 30000; ++i) upper += bits.below(bound) >= uint64_t{1} << 62 ? 1 : 0;
  EXPECT_NEAR(upper, 20000, 330);
}

}  // namespace
}  // namespace tasks::corpus
