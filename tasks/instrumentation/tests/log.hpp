#pragma once
/// Reads a log in the simplest way.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "instrumentation/log.hpp"
#include "ranks.hpp"

namespace instrumentation {

struct Record {
  Kind kind;
  uint64_t nanoseconds;
  std::string payload;

  template <class T>
  T as() const {
    T value{};
    EXPECT_GE(payload.size(), sizeof(T));
    std::memcpy(&value, payload.data(), std::min(payload.size(), sizeof(T)));
    return value;
  }
};

struct Log {
  Header header{};
  std::vector<Record> records;
  size_t bytes = 0;  ///< of the file

  std::vector<Record> of(Kind kind) const;
};

Log read_log(const std::filesystem::path& path);

/// Makes this rank's log; recording looks for it when something is first recorded.
std::filesystem::path make_log(uintmax_t size = 16 << 20);

/// For ranks that record into it.
extern const ranks::Options kRecording;

/// What monitoring left of this rank below a folder.
std::filesystem::path monitor_log_below(const std::filesystem::path& folder, int rank);

}  // namespace instrumentation
