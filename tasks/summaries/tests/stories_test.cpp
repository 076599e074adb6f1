// What is known about the made-up documents.
#include "stories.hpp"

#include <gmock/gmock.h>

#include <cmath>
#include <iterator>
#include <map>
#include <set>

#include "rouge.hpp"
#include "temporary_folder.hpp"
#include "words.hpp"

namespace tasks::summaries {
namespace {

using corpus::Bits;

// A document's sentences, each of its words.
std::vector<std::vector<std::string>> sentences_of(const std::string& document) {
  std::vector<std::vector<std::string>> sentences(1);
  for (const auto& word : words_of(document)) {
    if (word == ".") {
      sentences.emplace_back();
    } else {
      sentences.back().push_back(word);
    }
  }
  sentences.pop_back();  // nothing follows the last full stop
  return sentences;
}

// The sentence that is salient, found without the generator.
const std::vector<std::string>& salient(const std::vector<std::vector<std::string>>& sentences,
                                        Salience salience) {
  if (salience == Salience::lead) return sentences.front();
  const auto subject = [](const auto& sentence) { return sentence.end()[-4]; };
  const std::vector<std::string>* last = nullptr;
  for (size_t i = 0; i < sentences.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (subject(sentences[i]) == subject(sentences[j])) last = &sentences[i];
    }
  }
  return *last;
}

std::string stem(const std::string& word) { return word.substr(0, word.size() - 1); }

TEST(Stories, SummariesAreWhatTheirDocumentsSay) {
  for (const auto salience : {Salience::lead, Salience::count}) {
    const Stories stories(salience);
    Bits bits(5);
    for (int i = 0; i < 2000; ++i) {
      const auto pair = stories.draw(bits);
      const auto sentences = sentences_of(pair.document);
      ASSERT_THAT(sentences.size(), testing::AnyOf(4, 5));
      const auto& source = salient(sentences, salience);
      const auto summary = words_of(pair.summary);
      ASSERT_EQ(summary.size(), 5U);
      EXPECT_EQ(summary[1], source.end()[-4]);
      EXPECT_EQ(stem(summary[2]), stem(source.end()[-3]));
      EXPECT_EQ(summary[4], source.end()[-1]);
    }
  }
}

// The floor, from the choices' own probabilities: two determiners of 0.6 and 0.4, one verb in two
// forms of 0.7 and 0.3, six words.
TEST(Stories, HaveAnEntropyThatTheirChoicesAddUpTo) {
  const Stories stories(Salience::lead);
  const auto entropy = [](double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); };
  EXPECT_DOUBLE_EQ(stories.determiner().probability(0), 0.6);
  EXPECT_DOUBLE_EQ(stories.synonym().probability(0), 0.7);
  EXPECT_NEAR(stories.entropy_per_word(), (2 * entropy(0.6) + entropy(0.7)) / 6, 1e-15);
  EXPECT_NEAR(stories.entropy_per_word(), 0.3261, 5e-5);
}

// Of each drawn summary the surprise, given its document, by a reader that knows the rules: its
// mean is the entropy, to within four deviations of a mean of so many.
TEST(Stories, SurpriseAsMuchAsTheirEntropySays) {
  for (const auto salience : {Salience::lead, Salience::count}) {
    const Stories stories(salience);
    Bits bits(9);
    constexpr int kDrawn = 20'000;
    double sum = 0, squares = 0;
    for (int i = 0; i < kDrawn; ++i) {
      const auto pair = stories.draw(bits);
      const auto source = salient(sentences_of(pair.document), salience);
      const auto summary = words_of(pair.summary);
      double nats = 0;
      for (const size_t place : {0, 3}) {
        nats -= stories.determiner().log_probability(summary[place] == "ta" ? 0 : 1);
      }
      nats -= stories.synonym().log_probability(summary[2] == source.end()[-3] ? 0 : 1);
      sum += nats / 6;
      squares += nats * nats / 36;
    }
    const auto mean = sum / kDrawn;
    const auto deviation = std::sqrt((squares / kDrawn - mean * mean) / kDrawn);
    EXPECT_NEAR(mean, stories.entropy_per_word(), 4 * deviation);
  }
}

// Who knows the rules and writes the likelier word each time has this ROUGE: of five words three
// are sure but for the verb, and each determiner is right in 0.6; of four pairs 0.6, 0.7, 0.42 and
// 0.6 are. Summaries whose subject is their object would have pairs twice.
TEST(Stories, HaveAKnownRougeOfTheBestSummaries) {
  const Stories stories(Salience::lead);
  Bits bits(11);
  constexpr int kDrawn = 20'000;
  Rouge sum;
  for (int i = 0; i < kDrawn;) {
    const auto pair = stories.draw(bits);
    const auto source = salient(sentences_of(pair.document), Salience::lead);
    const auto words = words_of(pair.summary);
    if (words[1] == words[4]) continue;
    std::map<std::string, int64_t> ids;
    const auto id = [&](const std::string& word) {
      return ids.emplace(word, static_cast<int64_t>(ids.size())).first->second;
    };
    std::vector<int64_t> best, wanted;
    for (const auto& word :
         {std::string("ta"), words[1], source.end()[-3], std::string("ta"), words[4]}) {
      best.push_back(id(word));
    }
    for (const auto& word : words) wanted.push_back(id(word));
    const auto one = rouge(best, wanted);
    sum = {sum.one + one.one, sum.two + one.two, sum.longest + one.longest};
    ++i;
  }
  // Scores lie in [0, 1], so the deviation of a mean of so many is at most 0.0036.
  EXPECT_NEAR(sum.one / kDrawn, (2 + 0.7 + 2 * 0.6) / 5, 0.0142);
  EXPECT_NEAR(sum.two / kDrawn, (0.6 + 0.7 + 0.42 + 0.6) / 4, 0.0142);
  EXPECT_NEAR(sum.longest / kDrawn, (2 + 0.7 + 2 * 0.6) / 5, 0.0142);
}

TEST(Stories, HaveWordsThatAllDiffer) {
  const Stories stories(Salience::count);
  const auto words = stories.words();
  const std::set<std::string> all(words.begin(), words.end());
  EXPECT_EQ(all.size(), words.size());
  EXPECT_EQ(words.size(), 3U + 4 * (36 + 20 + 20 + 24));
  Bits bits(1);
  for (int i = 0; i < 500; ++i) {
    const auto pair = stories.draw(bits);
    for (const auto& word : words_of(pair.document + ' ' + pair.summary)) {
      EXPECT_TRUE(all.contains(word)) << word;
    }
  }
}

TEST(Stories, AreTheSameForTheSameSeed) {
  const TemporaryFolder folder;
  const Stories stories(Salience::lead);
  const auto written = [&](uint64_t seed) {
    write_stories(stories, seed, 20, folder.path() / "stories.jsonl");
    std::ifstream stream(folder.path() / "stories.jsonl");
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const auto one = written(1);
  EXPECT_EQ(written(1), one);
  EXPECT_NE(written(2), one);
  EXPECT_EQ(std::ranges::count(one, '\n'), 20);
}

}  // namespace
}  // namespace tasks::summaries
