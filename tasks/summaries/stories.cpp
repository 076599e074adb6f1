#include "stories.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <numeric>

#include "tasks/options.hpp"

namespace tasks::summaries {
namespace {

using corpus::Bits;
using corpus::Table;

constexpr int kTopics = 4, kNouns = 36, kVerbs = 20, kAdjectives = 24, kCast = 4;
// Two determiners and one of two verbs, of six words.
constexpr double kSummaryWords = 6;
constexpr std::array<const char*, 2> kDeterminers{"ta", "to"};

// A word's last letter shows its kind, its first its topic; what lies between counts.
std::string name(char kind, int topic, int number) {
  constexpr std::string_view kTopic = "bdgk", kConsonants = "lmnrsv", kVowels = "aeiou";
  const auto at = [](std::string_view letters, int i) {
    return letters[static_cast<size_t>(i) % letters.size()];
  };
  return {at(kTopic, topic), at(kVowels, number), at(kConsonants, number / 5),
          at(kVowels, number / 30 + number), kind};
}

std::string noun(int topic, int i) { return name('n', topic, i); }
std::string verb(int topic, int i) { return name('t', topic, i); }
std::string synonym_of(int topic, int i) { return name('z', topic, i); }
std::string adjective(int topic, int i) { return name('x', topic, i); }

int below(Bits& bits, int bound) {
  return static_cast<int>(bits.below(static_cast<uint64_t>(bound)));
}

template <class Items>
void shuffle(Items& items, Bits& bits) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[bits.below(i)]);
}

}  // namespace

Stories::Stories(Salience salience)
    : salience_(salience), determiner_(Table::chance(40)), synonym_(Table::chance(30)) {}

std::vector<int> Stories::subjects(Bits& bits) const {
  const int count = 4 + below(bits, 2);
  std::vector<int> subjects{0};
  if (salience_ == Salience::lead) {
    while (static_cast<int>(subjects.size()) < count) subjects.push_back(1 + below(bits, 2));
    return subjects;
  }
  subjects.push_back(0);
  for (int other = 1; other < count - 1; ++other) subjects.push_back(other);
  shuffle(subjects, bits);
  return subjects;
}

std::string Stories::sentence(int topic, const Event& event, Bits& bits) const {
  const auto determiner = [&] {
    return kDeterminers.at(static_cast<size_t>(determiner_.draw(bits)));
  };
  std::string text = determiner();
  if (below(bits, 2) == 0) text += ' ' + adjective(topic, below(bits, kAdjectives));
  text += ' ' + noun(topic, event.subject) + ' ' + verb(topic, event.verb) + ' ';
  text += determiner();
  return text + ' ' + noun(topic, event.object) + " .";
}

std::string Stories::summary(int topic, const Event& event, Bits& bits) const {
  const auto determiner = [&] {
    return kDeterminers.at(static_cast<size_t>(determiner_.draw(bits)));
  };
  std::string text = determiner();
  text += ' ' + noun(topic, event.subject) + ' ';
  text += synonym_.draw(bits) == 1 ? synonym_of(topic, event.verb) : verb(topic, event.verb);
  text += ' ';
  text += determiner();
  return text + ' ' + noun(topic, event.object);
}

Pair Stories::draw(Bits& bits) const {
  const int topic = below(bits, kTopics);
  std::array<int, kNouns> cast{};
  std::iota(cast.begin(), cast.end(), 0);
  for (size_t i = 0; i < kCast; ++i) std::swap(cast.at(i), cast.at(i + bits.below(kNouns - i)));

  Pair pair;
  Event salient{};
  bool found = false;
  for (const int who : subjects(bits)) {
    const Event event{cast.at(static_cast<size_t>(who)), below(bits, kVerbs), below(bits, kNouns)};
    if (!pair.document.empty()) pair.document += ' ';
    pair.document += sentence(topic, event, bits);
    if (who == 0 && (salience_ == Salience::count || !found)) salient = event;
    found = found || who == 0;
  }
  pair.summary = summary(topic, salient, bits);
  return pair;
}

double Stories::entropy_per_word() const {
  return (2 * determiner_.entropy() + synonym_.entropy()) / kSummaryWords;
}

std::vector<std::string> Stories::words() const {
  std::vector<std::string> words{"."};
  for (const auto* determiner : kDeterminers) words.emplace_back(determiner);
  for (int topic = 0; topic < kTopics; ++topic) {
    for (int i = 0; i < kNouns; ++i) words.push_back(noun(topic, i));
    for (int i = 0; i < kVerbs; ++i) words.push_back(verb(topic, i));
    for (int i = 0; i < kVerbs; ++i) words.push_back(synonym_of(topic, i));
    for (int i = 0; i < kAdjectives; ++i) words.push_back(adjective(topic, i));
  }
  return words;
}

void write_stories(const Stories& stories, uint64_t seed, int64_t count,
                   const std::filesystem::path& file) {
  Bits bits(seed);
  std::ofstream stream(file, std::ios::binary);
  for (int64_t i = 0; i < count; ++i) {
    stream << to_json_line(stories.draw(bits), std::to_string(i));
  }
  stream.close();
  if (!stream) throw Error(fmt::format("{}: cannot be written; is the disk full?", file.string()));
}

}  // namespace tasks::summaries
