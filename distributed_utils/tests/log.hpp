#pragma once
/// Reads what a rank recorded.
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "distributed_utils/recording.hpp"
#include "ranks.hpp"

namespace distributed_utils::recorded {

struct Record {
  recording::Kind kind;
  std::string payload;

  template <typename T>
  T as() const {
    T value;
    std::memcpy(&value, payload.data(), sizeof value);
    return value;
  }
};

struct Log {
  uint64_t dropped;
  std::vector<Record> records;

  std::vector<Record> of(recording::Kind kind) const;
};

Log read_log(const std::filesystem::path& path);

/// Makes this rank's log; recording looks for it when something is first recorded.
std::filesystem::path make_log(uintmax_t size = 16 << 20);

/// For ranks that record into it.
extern const ranks::Options kRecording;

}  // namespace distributed_utils::recorded
