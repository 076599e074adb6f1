// What a judged trainer trains on: see tasks/secret.hpp.
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "json_lines.hpp"
#include "tasks/options.hpp"

namespace tasks::summaries {

std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder);

namespace {

// Of samples. No world size divides one of them, and no split is as long as another.
constexpr std::array<size_t, 3> kTrain{41, 43, 47}, kValidation{17, 19, 23}, kTest{11, 13, 29};
constexpr size_t kSourceLength = 8, kTargetLength = 6;

size_t draw_below(std::mt19937_64& random, size_t bound) { return random() % bound; }

std::string letters(std::mt19937_64& random, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text += ' ';
    text += static_cast<char>('a' + draw_below(random, 9));
  }
  return text;
}

// A summary starts as its document does, which can be learned, and has from one to five words, so
// that ranks have different numbers of targets.
Pair draw_pair(std::mt19937_64& random) {
  const auto words = 5 + draw_below(random, kSourceLength - 5);
  auto document = letters(random, words);
  auto summary = document.substr(0, 2 * (1 + draw_below(random, kTargetLength - 1)) - 1);
  return {std::move(document), std::move(summary)};
}

// documents: those drawn before, of all splits. A judge recognises samples by their inputs.
void write_split(std::mt19937_64& random, size_t count, std::set<std::string>& documents,
                 const std::filesystem::path& file) {
  std::ofstream stream(file, std::ios::binary);
  for (size_t i = 0; i < count;) {
    const auto pair = draw_pair(random);
    if (!documents.insert(pair.document).second) continue;
    stream << to_json_line(pair, std::to_string(i));
    ++i;
  }
  stream.close();
  if (!stream) throw Error("cannot write " + file.string());
}

void write_config(const std::filesystem::path& file) {
  std::ofstream stream(file);
  stream << "base: laptop\nepochs: 3\nbatch_size: 3\nthreads: 1\nwidth: 8\nheads: 2\n"
            "feed_forward: 16\nencoder_layers: 1\ndecoder_layers: 1\ndropout: 0\n"
            "learning_rate: 15e-3\nwarm_up_steps: 2\nsource_length: "
         << kSourceLength << "\ntarget_length: " << kTargetLength << "\n";
  stream.close();
  if (!stream) throw Error("cannot write " + file.string());
}

}  // namespace

std::vector<std::string> make_secret(uint64_t seed, const std::filesystem::path& folder) {
  std::mt19937_64 random(seed);
  const auto data = folder / "data";
  std::filesystem::create_directories(data);
  const auto pick = [&](const std::array<size_t, 3>& sizes) {
    return sizes.at(draw_below(random, 3));
  };
  std::set<std::string> documents;
  write_split(random, pick(kTrain), documents, data / "train.jsonl");
  write_split(random, pick(kValidation), documents, data / "validation.jsonl");
  write_split(random, pick(kTest), documents, data / "test.jsonl");
  const auto config = folder / "secret.yaml";
  write_config(config);
  return {"--config",    config.string(), "--data", data.string(),
          "--precision", "fp64",          "--seed", std::to_string(random() % 1'000'000)};
}

}  // namespace tasks::summaries
