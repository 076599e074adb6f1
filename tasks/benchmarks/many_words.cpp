#include "many_words.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <random>

namespace many_words {
namespace {

constexpr int64_t kLength = 600'000;
constexpr int64_t kLine = 30;

void write_line(std::ofstream& file, int64_t& words, int64_t word) {
  file << 'w' << word << (++words % kLine == 0 ? '\n' : ' ');
}

}  // namespace

void write(const std::filesystem::path& folder, int64_t vocabulary) {
  const int64_t different = vocabulary - 2;  // <unk> and <eos>
  std::mt19937_64 random(1);
  // ranks r with probability ~ 1/r: the inverse of their (continuous) distribution
  const auto draw = [&] {
    const double uniform = static_cast<double>(random() >> 11) * 0x1p-53;
    return static_cast<int64_t>(std::pow(static_cast<double>(different), uniform)) - 1;
  };
  std::filesystem::create_directories(folder);
  for (const char* name : {"train.txt", "valid.txt", "test.txt"}) {
    std::ofstream file(folder / name);
    int64_t words = 0;
    const bool whole = std::string_view(name) == "train.txt";
    for (int64_t word = 0; whole && word < different; ++word) write_line(file, words, word);
    while (words < (whole ? kLength : kLength / 20)) write_line(file, words, draw());
    file << '\n';
  }
}

}  // namespace many_words
