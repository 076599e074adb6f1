#pragma once
/// Files that are damaged again and again.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>

#include "temporary_folder.hpp"

namespace tasks::summaries {

/// The text of the error that reading a file of these bytes ends with, which must name the file and
/// say what fixes it; empty if the file was read.
inline std::string error_of_bytes(
    const TemporaryFolder& folder, const std::string& bytes,
    const std::function<void(const std::filesystem::path& file)>& read) {
  // A new file each time: a file system may put one on disk at once whose content is replaced.
  std::filesystem::remove(folder.path() / "damaged");
  const auto file = folder.write("damaged", bytes);
  try {
    read(file);
    return {};
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), testing::StartsWith(file.string() + ": "));
    EXPECT_THAT(error.what(), testing::HasSubstr(" Fix: "));
    return error.what();
  }
}

/// Some bytes of [from, to) are others.
inline std::string damaged(std::string bytes, std::mt19937_64& random, size_t from, size_t to) {
  for (auto times = 1 + random() % 8; times > 0; --times) {
    bytes[from + random() % (to - from)] = static_cast<char>(random());
  }
  return bytes;
}

}  // namespace tasks::summaries
