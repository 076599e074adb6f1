// Damaged files: an error that names the file, or numbers; never a crash, a hang or a read beyond
// the file.
#include <gmock/gmock.h>
#include <torch/torch.h>

#include <cstdlib>
#include <random>

#include "errors.hpp"
#include "fields.hpp"
#include "foreign.hpp"
#include "temporary_folder.hpp"
#include "written.hpp"

namespace tasks::weather {
namespace {

using testing::HasSubstr;

/// A file that is damaged again and again, in a folder of good ones.
class Damage : public testing::Test {
 protected:
  Damage() { write_all(folder_.path()); }

  /// Whether reading all of the test split is refused, with the file's name.
  bool refused(const std::filesystem::path& file, const std::string& bytes) {
    write_bytes(file, bytes);
    ++tried_;
    try {
      const Fields fields(folder_.path(), "test", 1, torch::kFloat);
      for (size_t i = 0; i < std::min<size_t>(fields.size(), 10); ++i) fields.fetch({i});
      return false;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(folder_.path().string()));
      return true;
    }
  }

  torch::Tensor read() const {
    return Fields(folder_.path(), "test", 1, torch::kFloat).fetch({0, 1}).input[0];
  }

  std::filesystem::path at(const std::string& name) const { return folder_.path() / name; }

  TemporaryFolder folder_;
  std::mt19937_64 random_{5};
  int tried_ = 0;
};

// What number_at() begins with.
constexpr float kFirstNumbers[] = {number_at(3, 0, 0), number_at(3, 0, 1)};

std::string flipped(std::string bytes, std::mt19937_64& random, size_t from, size_t to, int times) {
  for (int i = 0; i < times; ++i) {
    bytes[from + random() % (to - from)] = static_cast<char>(random());
  }
  return bytes;
}

/// Of each kind; more by hand: WEATHER_DAMAGE_ROUNDS=2000.
int rounds() {
  const char* more = std::getenv("WEATHER_DAMAGE_ROUNDS");  // NOLINT(concurrency-mt-unsafe)
  return more == nullptr ? 60 : std::atoi(more);
}

TEST_F(Damage, OfForeignFilesIsSurvived) {
  const auto file = at("test/1993.h5");
  for (const auto what : {Foreign::old_format, Foreign::chunked, Foreign::compressed}) {
    write_foreign(file, what);
    const auto good = bytes_of(file);
    const auto header = std::min<size_t>(good.size(), 2048);
    for (int i = 0; i < rounds(); ++i) {
      refused(file, flipped(good, random_, 0, good.size(), 1 + static_cast<int>(random_() % 20)));
      refused(file, flipped(good, random_, 0, header, 1 + static_cast<int>(random_() % 3)));
    }
  }
  EXPECT_EQ(tried_, 6 * rounds());
}

TEST_F(Damage, WhatIsCutOffIsAlwaysSeen) {
  const auto file = at("test/1993.h5");
  for (const bool ours : {true, false}) {
    if (!ours) write_foreign(file, Foreign::old_format);
    const auto good = bytes_of(file);
    for (size_t length = 0; length < good.size(); length += 1 + random_() % 97) {
      EXPECT_TRUE(refused(file, good.substr(0, length))) << length;
    }
    EXPECT_TRUE(refused(file, good.substr(0, good.size() - 1)));
    EXPECT_FALSE(refused(file, good));
  }
}

// Our own headers have checksums, and the numbers behind them have none. Some bytes mean nothing.
TEST_F(Damage, OfOurOwnHeadersIsSeenOrChangesNothing) {
  const auto file = at("test/1993.h5");
  const auto good = bytes_of(file);
  const auto numbers = read();
  const auto begin = good.find(std::string(reinterpret_cast<const char*>(kFirstNumbers), 8));
  ASSERT_NE(begin, std::string::npos);
  const size_t end = begin + 3 * 2 * 4 * 8 * sizeof(float);
  int seen = 0;
  for (size_t i = 0; i < good.size(); i += 1 + random_() % 9) {
    if (i >= begin && i < end) continue;
    auto bytes = good;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 + random_() % 255));
    if (refused(file, bytes)) {
      ++seen;
    } else {
      EXPECT_TRUE(torch::equal(read(), numbers)) << i;
    }
  }
  EXPECT_GT(seen, 20);
}

TEST_F(Damage, RandomBytesAreNeverRead) {
  for (int i = 0; i < rounds(); ++i) {
    std::string bytes(random_() % 3000, 0);
    for (auto& byte : bytes) byte = static_cast<char>(random_());
    EXPECT_TRUE(refused(at("test/1993.h5"), bytes));
    // Behind the right first bytes.
    if (bytes.size() > 8) {
      EXPECT_TRUE(refused(at("test/1993.h5"), "\x89HDF\r\n\x1a\n" + bytes.substr(8)));
    }
  }
}

TEST_F(Damage, OfStatisticsIsSurvived) {
  const auto file = at("stats/global_stds.npy");
  const auto good = bytes_of(file);
  for (size_t length = 0; length < good.size(); ++length) {
    EXPECT_TRUE(refused(file, good.substr(0, length))) << length;
  }
  for (int i = 0; i < 5 * rounds(); ++i) {
    refused(file, flipped(good, random_, 0, good.size(), 1 + static_cast<int>(random_() % 5)));
  }
  EXPECT_TRUE(refused(file, good + "x"));
  EXPECT_FALSE(refused(file, good));
}

}  // namespace
}  // namespace tasks::weather
