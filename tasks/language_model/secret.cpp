// The text that a judged trainer trains on: see tasks/secret.hpp.
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tasks/options.hpp"

namespace tasks::language_model {

std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);

namespace {

// Sequence length and strides make samples out of words: a training sample every third word,
// evaluation samples side by side.
constexpr size_t kSequence = 5, kStride = 3;
// Of samples. No world size divides one of them, and no split is as long as another.
constexpr std::array<size_t, 3> kTrain{41, 43, 47}, kValidation{17, 19, 23}, kTest{11, 13, 29};

// Written out, because the standard's distributions differ between libraries.
size_t below(std::mt19937_64& random, size_t bound) { return random() % bound; }

// The i-th word comes as often as 1 / i. This much can be learned, so that the validation loss
// falls before it rises again: with 1 of 160 secrets its best epoch was the first at all world
// sizes, with 17 the last. Words that are equally likely made it the first in a third of them.
char word(std::mt19937_64& random) {
  constexpr size_t kWords = 19, kOften = 5040;
  size_t all = 0;
  for (size_t i = 1; i <= kWords; ++i) all += kOften / i;
  size_t drawn = below(random, all), i = 1;
  for (; drawn >= kOften / i; ++i) drawn -= kOften / i;
  return static_cast<char>('a' + i - 1);
}

std::string words(std::mt19937_64& random, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += word(random);
    text += ' ';
  }
  return text + '\n';
}

// Whether all samples are distinct, of this text and of those before: a judge recognises them by
// their inputs. text: words of one letter.
bool adds_new_samples(const std::string& text, size_t stride, std::set<std::string>& samples) {
  auto all = samples;
  for (size_t from = 0; 2 * (from + kSequence) <= text.size(); from += stride) {
    if (!all.insert(text.substr(2 * from, 2 * kSequence)).second) return false;
  }
  samples = std::move(all);
  return true;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw Error("cannot write " + path.string());
}

}  // namespace

std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder) {
  std::mt19937_64 random(seed);
  const auto data = folder / "data";
  std::filesystem::create_directories(data);
  const auto pick = [&](const std::array<size_t, 3>& sizes) { return sizes[below(random, 3)]; };
  std::set<std::string> samples;
  // All on one line, whose end counts as a word.
  const auto text = [&](size_t tokens, size_t stride) {
    for (;;) {
      auto drawn = words(random, tokens - 1);
      if (adds_new_samples(drawn, stride, samples)) return drawn;
    }
  };
  write_file(data / "train.txt", text((pick(kTrain) - 1) * kStride + kSequence + 1, kStride));
  write_file(data / "valid.txt", text(pick(kValidation) * kSequence + 1, kSequence));
  write_file(data / "test.txt", text(pick(kTest) * kSequence + 1, kSequence));
  const auto config = folder / "secret.yaml";
  write_file(config,
             "base: laptop\nepochs: 3\nbatch_size: 3\n"
             "width: 8\nheads: 2\nlayers: 1\n"
             "feed_forward: 16\ndropout: 0\nsequence_length: " +
                 std::to_string(kSequence) + "\nstride: " + std::to_string(kStride) +
                 "\nlearning_rate: 15e-3\nthreads: 1\n");
  return {"--config",    config.string(), "--data", data.string(),
          "--precision", "fp64",          "--seed", std::to_string(random() % 1'000'000)};
}

}  // namespace tasks::language_model
